#!/bin/sh
# build.sh ARCHIVE.tar.gz
#
# Packs the application, app/ beside this file, as climate/ into ARCHIVE. The
# same files make the same bytes, whoever packs them and when, so that the
# archive's checksum says which application it is. Needs GNU tar and gzip.

set -eu
LC_ALL=C
export LC_ALL

if [ $# -ne 1 ]; then
	printf '%s\n' 'usage: build.sh ARCHIVE.tar.gz' 'example: build.sh climate.tar.gz' >&2
	exit 2
fi
case $0 in
*/*) here=${0%/*} ;;
*) here=. ;;
esac

trap 'rm -f "$1.tar" "$1.tmp"' EXIT
tar --create --file="$1.tar" --force-local --directory="$here" --format=ustar \
	--no-recursion --sort=name --transform='s,^app,climate,' \
	--mtime=@1577836800 --owner=:0 --group=:0 --numeric-owner --mode=u=rwX,go=rX \
	app app/climate.sh app/plot.awk app/records.awk app/stats.awk app/table.awk
gzip --no-name --best <"$1.tar" >"$1.tmp"
mv -f "$1.tmp" "$1"
