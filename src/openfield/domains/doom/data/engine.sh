#!/bin/sh
# The program that the engine's package takes for the engine. It ends with the engine, once the package is ready.
# It gives the engine a folder of its own, because the engine leaves files where it works. It writes down the arguments
# of the engine: when a terminal is closed, engines and owner end at once, and only these tell what they had shared.
trap '' INT
cd {place}
printf '%s\0' "$@" > {words}
{engine} "$@" &
wait
exec >/dev/null 2>&1
[ -e {ready} ] || : > {gone}
while ! [ -e {ready} ] && read -r _ _ _ parent _ < /proc/$$/stat && [ "$parent" = $PPID ]; do sleep 0.5; done
