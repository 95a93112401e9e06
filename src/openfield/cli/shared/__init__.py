"""What several commands share: the options of a domain, options that choose trials, results, and progress bars."""
