"""What several commands share: the options of a domain, options that choose trials, and results."""
