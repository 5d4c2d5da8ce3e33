"""Tables: what a database is asked, and how SQLite and PostgreSQL differ in it."""
