"""The commands `openfield ond visit`, `ond stream` and `ond merge`, one module each.

The command line finds them through `OndDomain.commands`. Each reads its options and prints the results; the work is
done in `client` and `scoring`.
"""
