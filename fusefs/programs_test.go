package fusefs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
)

// TestGit is case 15.
func TestGit(t *testing.T) {
	need(t, "git")
	m := near(t)
	m.shell(t, `
		cd "$2/.."; rm -rf "$2.src"; git init -q "$2.src"; cd "$2.src"
		for i in $(seq 8); do mkdir -p d$i/e; echo $i > d$i/e/f; echo $i > g$i; done
		ln -s g1 link; git add .; git commit -qm one
		cd /; git clone -q "$2.src" "$1/clone"; rm -rf "$2.src"
		cd "$1/clone"; git fsck --strict; git status --porcelain; echo more >> g7; git commit -qam two; git gc -q; git fsck --strict`)
}

// TestMake is case 18: a parallel build, whose programs are run from the mount.
func TestMake(t *testing.T) {
	need(t, "make", "gcc")
	m := near(t)
	out := m.shell(t, `
		mkdir "$1/src"; cd "$1/src"
		for i in 1 2 3 4; do echo "int f$i(void) { return $i; }" > f$i.c; done
		cat > main.c <<'END'
int printf(const char *, ...);
int f1(void), f2(void), f3(void), f4(void);
int main(void) { return printf("%d\n", f1() + f2() + f3() + f4()) != 3; }
END
		printf 'sum: main.o f1.o f2.o f3.o f4.o\n\tgcc -o $@ $^\n' > Makefile
		make -s -j2
		./sum; make -q`)
	if out != "10" {
		t.Errorf("the built program says %q", out)
	}
}

// TestCopies is case 30: trees copied with all their attributes, as far as these are to
// be had.
func TestCopies(t *testing.T) {
	need(t, "rsync", "setfattr", "getfattr")
	m := near(t)
	m.shell(t, `
		src="$2.src"; mkdir -p "$src/d"; trap 'rm -rf "$src"' EXIT
		echo a > "$src/a"; echo b > "$src/d/b"; ln -s a "$src/l"; ln "$src/a" "$src/hard"
		chmod 640 "$src/a"; chmod 711 "$src/d"; touch -d '2001-02-03 04:05:06' "$src/d/b" "$src/d"
		setfattr -n user.k -v value "$src/a"
		cp -a "$src" "$1/cp"
		rsync -aHX "$src/" "$1/rsync"
		tar -C "$src" -cf - . | (mkdir "$1/tar"; tar -C "$1/tar" -xpf -)
		for copy in cp rsync tar; do
			c="$1/$copy"
			for f in a d/b hard; do cmp "$src/$f" "$c/$f"; done
			[ "$(stat -c '%a %Y' "$c/a" "$c/d" "$c/d/b")" = "$(stat -c '%a %Y' "$src/a" "$src/d" "$src/d/b")" ]
			[ "$(stat -c %h "$c/a")" = 2 ] || echo "$copy: no hard link"
			[ $copy = tar ] || [ "$(getfattr --only-values -n user.k "$c/a")" = value ]
		done
		cp "$1/cp/a" "$1/cp/again"; cmp "$src/a" "$1/cp/again" # by copy_file_range, which is not to be had
		[ "$(readlink "$1/tar/l" "$1/cp/l" "$1/rsync/l" | sort -u)" = a ]
		rsync -aHX --omit-link-times --dry-run --itemize-changes "$src/" "$1/rsync"`)
}

// TestExecute runs a program and a script from the mount.
func TestExecute(t *testing.T) {
	m := near(t)
	out := m.shell(t, `
		cp /bin/echo "$1/prog"; "$1/prog" runs
		printf '#!/bin/sh\necho script "$0"\n' > "$1/s"; chmod +x "$1/s"; cd "$1"; ./s
		[ -x s ] && [ ! -x missing ]; chmod -x s; [ ! -x s ]; ! ./s 2>/dev/null`)
	if out != "runs\nscript ./s" {
		t.Errorf("%q", out)
	}
}

// TestAccess asks what may be done, where the server allows reading only.
func TestAccess(t *testing.T) {
	m := near(t)
	if err := os.Mkdir(m.path("d"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, m.path("d/f"), "content")
	if err := m.client.Setacl(t.Context(), "/d", "unix:"+chirptest.User(t), "rl"); err != nil {
		t.Fatal(err)
	}
	m.shell(t, `test -r "$1/d/f"; ! test -w "$1/d/f"; ! test -w "$1/d"; test -w "$1"; cd "$1/d"; ! (: >> f) 2>/dev/null`)
}

// TestReadOnly mounts for reading only: the kernel refuses changes, and so do we.
func TestReadOnly(t *testing.T) {
	p := chirptest.Server(t)
	write(t, filepath.Join(p.Root, "f"), "content")
	m := mounted(t, p, p.Addr, func(_ *client.Options, o *Options, _ *MountOptions) { o.ReadOnly = true })
	m.shell(t, `test "$(cat "$1/f")" = content; grep -q " $1 fuse.skeletonkey ro," /proc/self/mounts`)
	out, err := m.try(`for c in "touch $1/new" "rm $1/f" "mv $1/f $1/g" "mkdir $1/d" "truncate -s 0 $1/f" "chmod 600 $1/f" "ln -s a $1/l"; do ! $c || exit 0; done; exit 1`)
	if err == nil || strings.Count(out, "Read-only file system") != 7 {
		t.Errorf("changes: %v\n%s", err, out)
	}
}

// TestSubdirectory mounts a directory of the export: nothing outside is to be seen.
func TestSubdirectory(t *testing.T) {
	p := chirptest.Server(t)
	if err := os.MkdirAll(filepath.Join(p.Root, "a b/c"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.Root, "a b/c/f"), "inside")
	m := mounted(t, p, p.Addr, func(_ *client.Options, o *Options, _ *MountOptions) { o.Path = "/a b/c" })
	if got := read(t, m.path("f")); got != "inside" {
		t.Errorf("read %q", got)
	}
	write(t, m.path("g"), "new")
	if got := read(t, filepath.Join(p.Root, "a b/c/g")); got != "new" {
		t.Errorf("read %q", got)
	}
	for _, path := range []string{"/missing", "/a b/c/f"} {
		f, err := New(m.client, Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Mount(t.Context(), f, t.TempDir(), MountOptions{}); err == nil {
			t.Errorf("%s was mounted", path)
		}
	}
}

// TestNames is case 1 through the mount.
func TestNames(t *testing.T) {
	m := near(t)
	names := []string{"a b", "a%20b", "100%", "\xff", "é", "<'\">", "a\\b", strings.Repeat("n", 255), "-", "~"}
	for _, name := range names {
		write(t, m.path(name), name)
	}
	unique(t, list(t, m.dir), len(names))
	for _, name := range names {
		if got := read(t, m.remote(name)); got != name {
			t.Errorf("%q holds %q on the server", name, got)
		}
		if err := os.Rename(m.path(name), m.path("moved")); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if got := read(t, m.path("moved")); got != name {
			t.Errorf("%q holds %q after it was moved", name, got)
		}
		if err := os.Remove(m.path("moved")); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(m.path(strings.Repeat("n", 256)), nil, 0o644); err == nil {
		t.Error("a name of 256 bytes was taken")
	}
	if err := os.WriteFile(m.path(".__acl"), nil, 0o644); err == nil {
		t.Error("the ACL file can be written")
	}
}

func list(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
