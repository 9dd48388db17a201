package confine

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadOnlyRootRefusesEveryChange(t *testing.T) {
	tr := newTree(t, Options{ReadOnly: true})
	tr.write("f", "f")
	tr.write("d/g", "g")
	tr.write(".__acl", "acl")
	tr.mkdir("empty")
	at := func(path string) *At { return tr.at(path, false) }
	open := func(path string, flags int) error {
		f, _, err := at(path).OpenFile(flags, 0o644)
		if err == nil {
			f.Close()
		}
		return err
	}
	file, _, err := at("/f").OpenFile(unix.O_RDONLY, 0)
	must(t, err)
	defer file.Close()
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	for name, err := range map[string]error{
		"open to write":     open("/f", unix.O_WRONLY),
		"open both ways":    open("/f", unix.O_RDWR),
		"open and truncate": open("/f", unix.O_RDONLY|unix.O_TRUNC),
		"create":            open("/new", unix.O_RDONLY|unix.O_CREAT),
		"put":               tr.put("/f", "x", 0o644, CommitOptions{}),
		"mkdir":             at("/new").Mkdir(0o755),
		"rmdir":             at("/empty").Rmdir(),
		"unlink":            at("/f").Unlink(),
		"rmall":             at("/d").RemoveAll(t.Context(), nil),
		"rename":            at("/f").Rename(at("/new")),
		"link":              at("/new").Link(at("/f")),
		"symlink":           at("/new").Symlink("f"),
		"chmod":             at("/f").Chmod(0o600),
		"utimens":           at("/f").Utimens(now, now),
		"truncate":          at("/f").Truncate(0),
		"setxattr":          at("/f").Setxattr("user.a", nil, 0),
		"removexattr":       at("/f").Removexattr("user.a"),
		"access":            at("/f").Access(unix.W_OK),
		"write private":     at("/f").WritePrivate(".__acl", nil, 0o644),
		"remove private":    at("/f").RemovePrivate(".__acl"),
		"fchmod":            file.Chmod(0o600),
		"ftruncate":         file.Truncate(0),
		"futimens":          file.Utimens(now, now),
		"fsetxattr":         file.Setxattr("user.a", nil, 0),
		"fremovexattr":      file.Removexattr("user.a"),
	} {
		wantErr(t, name, err, unix.EROFS)
	}
	must(t, open("/f", unix.O_RDONLY))
	must(t, open("/f", unix.O_RDONLY|unix.O_CREAT))
	wantErr(t, "create only", open("/f", unix.O_RDONLY|unix.O_CREAT|unix.O_EXCL), unix.EEXIST)
	must(t, at("/f").Access(unix.R_OK))
	if _, _, err := at("/f").ReadPrivate(".__acl", 10); err != nil || !tr.ReadOnly() {
		t.Error(err)
	}
	if tr.content("f") != "f" || tr.content("d/g") != "g" || len(tr.names("/")) != 4 {
		t.Errorf("changed: %q", tr.names("/"))
	}
}

func TestOpenExport(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/f", nil, 0o644))
	must(t, os.Mkdir(dir+"/export", 0o755))
	must(t, os.Symlink("export", dir+"/link"))
	_, err := Open(dir+"/none", Options{})
	wantErr(t, "missing", err, unix.ENOENT)
	_, err = Open(dir+"/f", Options{})
	wantErr(t, "a file", err, unix.ENOTDIR)
	root, err := Open(dir+"/link", Options{})
	must(t, err)
	must(t, root.Close())
}
