#!/bin/sh
# against-tar.sh TREE [ROUNDS]: unpacks TREE's archives with `skeletonkey unpack` and
# with GNU tar and the system's decompressors, in turn, and prints for each format the
# least wall-clock and CPU seconds of all rounds and the most memory of a process.
# It works in memory (/dev/shm), so that disks do not blur the picture. Needs
# skeletonkey in PATH, GNU tar and time, gzip, zstd and xz.
set -eu
tree=$1 rounds=${2:-5}
dir=$(mktemp -d /dev/shm/against-tar.XXXXXX)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

tar cf "$dir/a.tar" -C "$(dirname "$tree")" "$(basename "$tree")"
gzip -k "$dir/a.tar"
zstd -q -k "$dir/a.tar" -o "$dir/a.tar.zst"
xz -k -T0 "$dir/a.tar"
printf '%s files, %s bytes\n' "$(find "$tree" -type f | wc -l)" "$(wc -c <"$dir/a.tar")"
printf 'format\tprogram\tseconds\tCPU\tMiB\n'

# measure PROGRAM FORMAT COMMAND...: one line of the log.
measure() {
    program=$1 format=$2
    shift 2
    rm -rf "$dir/out"
    /usr/bin/time -f "$format $program %e %U %S %M" -a -o "$dir/log" "$@" >/dev/null
}

for _ in $(seq "$rounds"); do
    for format in tar tar.gz tar.zst tar.xz; do
        measure skeletonkey $format skeletonkey unpack --no-sync "$dir/a.$format" "$dir/out"
        mkdir -p "$dir/gnu"
        measure tar $format tar xf "$dir/a.$format" --no-same-owner -C "$dir/gnu"
        rm -rf "$dir/gnu"
    done
done
awk '{ k = $1 "\t" $2; c = $4 + $5
       if (!(k in s) || $3 < s[k]) s[k] = $3
       if (!(k in p) || c < p[k]) p[k] = c
       if ($6 > m[k]) m[k] = $6 }
     END { for (k in s) printf "%s\t%.2f\t%.2f\t%.0f\n", k, s[k], p[k], m[k] / 1024 }' "$dir/log" | sort
