#!/bin/sh
# Counts the lines of each file in the directory $1, into $2/count.
set -eu
here=$(dirname "$0")
tmp=$2/count.tmp
{
    echo "wordcount $(cat "$here/version")"
    for file in "$1"/*; do
        printf '%s\t%s\n' "${file##*/}" "$(wc -l <"$file")"
    done
} >"$tmp"
mv "$tmp" "$2/count"
