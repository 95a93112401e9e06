"""The tasks: engines, questions and the catalogue that names them all."""
