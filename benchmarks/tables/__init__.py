"""The tables and figures of published papers, made again, and the report of all that is stored."""
