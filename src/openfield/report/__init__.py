"""What people see of a run: a table, a page, an export."""
