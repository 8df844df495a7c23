#!/bin/sh
# count.sh WHAT FILE: prints how many of WHAT are in FILE; each WHAT is a separate program.
grep -qx -- "$1" commands.txt || { echo "count.sh: there is no $1" >&2; exit 1; }
sh "./$1.sh" "$2"
