# Waits until its owner closes a pipe or ends, and then ends a private broker.
# Its arguments are the broker's process group, if it runs, the name server's port, and the folder.
read -r _
[ -z "$0" ] || kill -s KILL -- "-$0"
for _ in 1 2 3 4 5 6 7 8 9 10; do epmd -port "$1" -kill | grep -q Killed && break; sleep 0.2; done
rm -rf "$2" || rm -rf "$2"
