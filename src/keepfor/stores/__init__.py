"""Where memory lives: each store scans and acts, and has never heard of a policy."""
