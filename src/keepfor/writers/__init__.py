"""The write site, where a policy meets a store."""
