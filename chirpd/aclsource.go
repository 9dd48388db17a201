package chirpd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/confine"
)

// aclName is the private file that holds a directory's ACL.
const aclName = confine.PrivatePrefix + "acl"

// maxACL bounds an ACL file, in bytes.
const maxACL = 1 << 20

// maxCachedACLs bounds the cache; it is emptied when full.
const maxCachedACLs = 8192

// settled is how old a change must be before an ACL is kept: within one tick of the
// file system's clock a second change may leave the same stamp. Some file systems count
// whole seconds, even two at a time.
const (
	settled       = 50 * time.Millisecond
	settledCoarse = 2500 * time.Millisecond
)

// aclSource finds the ACL that holds in a directory. It is safe for concurrent use.
type aclSource struct {
	fallback acl.ACL // for directories without one; built in or configured
	inherit  bool
	*aclFiles
}

// aclFiles keeps what was read, for all exports, as two of them may share directories.
type aclFiles struct {
	log   *slog.Logger
	turns turns[dirID] // of those who change an ACL

	mu    sync.RWMutex // guards cache; not held across disk
	cache map[aclStamp]acl.ACL
}

// aclStamp tells one state of an ACL file from every other.
type aclStamp struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
}

// in is the ACL that holds in a's containing directory, and whether it comes from a
// file of the tree. An error means that nothing is granted.
func (s *aclSource) in(a *confine.At) (list acl.ACL, fromTree bool, err error) {
	list, fromTree, err = s.own(a)
	if fromTree || err != nil {
		return list, fromTree, err
	}
	if !s.inherit {
		return s.fallback, false, nil
	}
	above, err := a.Nearest(aclName)
	if errors.Is(err, unix.ENOENT) {
		return s.fallback, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer above.Close()
	list, _, err = s.own(above)
	return list, true, err
}

// own is the ACL that a's containing directory has itself, if it has one.
func (s *aclFiles) own(a *confine.At) (list acl.ACL, has bool, err error) {
	info, err := a.StatPrivate(aclName)
	if errors.Is(err, unix.ENOENT) {
		return nil, false, nil
	}
	if err == nil {
		list, err = s.load(a, &info)
	}
	return list, err == nil, err
}

// load reads and parses the ACL file of a's directory unless that state of it is
// known. One that does not parse grants nothing.
func (s *aclFiles) load(a *confine.At, info *confine.Info) (acl.ACL, error) {
	s.mu.RLock()
	list, ok := s.cache[stampOf(info)]
	s.mu.RUnlock()
	if ok {
		return list, nil
	}
	text, read, err := a.ReadPrivate(aclName, maxACL)
	if err != nil {
		return nil, err
	}
	if list, err = acl.Parse(text); err != nil {
		s.log.Error("an ACL that cannot be read grants nothing", "dir", a.DirPath(), "err", err)
	}
	if int64(len(text)) == read.Size && isSettled(&read) {
		s.keep(stampOf(&read), list)
	}
	return list, nil
}

func (s *aclFiles) keep(stamp aclStamp, list acl.ACL) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.cache) >= maxCachedACLs {
		clear(s.cache)
	}
	s.cache[stamp] = list
}

func stampOf(i *confine.Info) aclStamp {
	return aclStamp{i.Dev, i.Ino, i.Size, i.Mtime, i.Ctime}
}

func isSettled(i *confine.Info) bool {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME, &now) != nil {
		return false
	}
	age := time.Duration(now.Nano() - i.Ctime.Nano())
	if i.Ctime.Nsec == 0 {
		return age > settledCoarse
	}
	return age > settled
}

// builtinACL gives everything to the user who runs the server and to the owner of
// the export.
func builtinACL(root *confine.Root) (acl.ACL, error) {
	a, err := root.Walk("/", false)
	if err != nil {
		return nil, fmt.Errorf("owner of the export: %w", err)
	}
	defer a.Close()
	info, err := a.Stat()
	if err != nil {
		return nil, fmt.Errorf("owner of the export: %w", err)
	}
	list := acl.Builtin(auth.UserName(uint32(os.Geteuid())))
	return list.Set("unix:"+auth.UserName(info.UID), acl.Full), nil
}
