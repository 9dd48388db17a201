package confine

import (
	"strings"

	"golang.org/x/sys/unix"
)

// userSpace begins the attributes that clients may see. The others act on the machine:
// security.capability makes a program powerful, POSIX ACLs open files to local users.
const userSpace = "user."

// xattrMax is Linux's bound for a value and for a list of names, in bytes.
const xattrMax = 65536

func attrName(name string) error {
	if !strings.HasPrefix(name, userSpace) {
		return unix.EOPNOTSUPP
	}
	return nil
}

// Getxattr gives the value of the attribute name, which begins with "user."
// (others: EOPNOTSUPP); ENODATA when there is none. The object is not followed: a link
// itself has no such attributes (ENODATA, or EPERM when one is set).
func (a *At) Getxattr(name string) ([]byte, error) {
	path, err := a.attrPath(name)
	if err != nil {
		return nil, a.fail("getxattr", err)
	}
	value, err := sized(func(buf []byte) (int, error) { return unix.Lgetxattr(path, name, buf) })
	return value, a.fail("getxattr", err)
}

// Setxattr sets an attribute. flags are 0, unix.XATTR_CREATE or unix.XATTR_REPLACE.
func (a *At) Setxattr(name string, value []byte, flags int) error {
	if err := a.change("setxattr"); err != nil {
		return err
	}
	path, err := a.attrPath(name)
	if err != nil {
		return a.fail("setxattr", err)
	}
	return a.fail("setxattr", again(func() error { return unix.Lsetxattr(path, name, value, flags) }))
}

// Removexattr removes an attribute.
func (a *At) Removexattr(name string) error {
	if err := a.change("removexattr"); err != nil {
		return err
	}
	path, err := a.attrPath(name)
	if err != nil {
		return a.fail("removexattr", err)
	}
	return a.fail("removexattr", again(func() error { return unix.Lremovexattr(path, name) }))
}

// Listxattr gives the names of the object's attributes, those of "user." only.
func (a *At) Listxattr() ([]string, error) {
	path, err := a.attrPath(userSpace)
	if err != nil {
		return nil, a.fail("listxattr", err)
	}
	list, err := sized(func(buf []byte) (int, error) { return unix.Llistxattr(path, buf) })
	return userNames(list), a.fail("listxattr", err)
}

// attrPath names the object for the calls that take only paths: the descriptor of its
// directory, then its name, which those calls do not follow.
func (a *At) attrPath(name string) (string, error) {
	if err := attrName(name); err != nil {
		return "", err
	}
	if !a.root.proc {
		return "", ErrNoProc
	}
	return procPath(a.fd) + "/" + a.name, nil
}

// sized runs a call that fills a buffer, with a small one first and then the largest.
func sized(call func(buf []byte) (int, error)) ([]byte, error) {
	for _, size := range [...]int{256, xattrMax} {
		buf := make([]byte, size)
		var n int
		err := again(func() (err error) { n, err = call(buf); return })
		if err == nil {
			return buf[:n], nil
		}
		if err != unix.ERANGE || size == xattrMax {
			return nil, err
		}
	}
	return nil, unix.ERANGE
}

func userNames(list []byte) []string {
	var names []string
	for name := range strings.SplitSeq(string(list), "\x00") {
		if strings.HasPrefix(name, userSpace) {
			names = append(names, name)
		}
	}
	return names
}

// Getxattr is [At.Getxattr] for the open file.
func (f *File) Getxattr(name string) (value []byte, err error) {
	err = f.control("fgetxattr", func(fd int) (err error) {
		if err = attrName(name); err == nil {
			value, err = sized(func(buf []byte) (int, error) { return unix.Fgetxattr(fd, name, buf) })
		}
		return err
	})
	return value, err
}

// Setxattr is [At.Setxattr] for the open file.
func (f *File) Setxattr(name string, value []byte, flags int) error {
	return f.change("fsetxattr", func(fd int) error {
		if err := attrName(name); err != nil {
			return err
		}
		return again(func() error { return unix.Fsetxattr(fd, name, value, flags) })
	})
}

// Removexattr is [At.Removexattr] for the open file.
func (f *File) Removexattr(name string) error {
	return f.change("fremovexattr", func(fd int) error {
		if err := attrName(name); err != nil {
			return err
		}
		return again(func() error { return unix.Fremovexattr(fd, name) })
	})
}

// Listxattr is [At.Listxattr] for the open file.
func (f *File) Listxattr() ([]string, error) {
	var list []byte
	err := f.control("flistxattr", func(fd int) (err error) {
		list, err = sized(func(buf []byte) (int, error) { return unix.Flistxattr(fd, buf) })
		return err
	})
	return userNames(list), err
}
