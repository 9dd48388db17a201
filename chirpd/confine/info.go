package confine

import "golang.org/x/sys/unix"

const statxMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME

// Info is what is known of a file. Sizes are in bytes, Blocks counts units of 512
// bytes, times are since 1970 with nanoseconds and may be negative or beyond 2106.
type Info struct {
	Dev, Ino uint64
	// Mode has the type (unix.S_IFMT) and the permissions.
	Mode                       uint32
	Nlink                      uint32
	UID, GID                   uint32
	Rdev                       uint64
	Size                       int64
	Blksize, Blocks            int64
	Atime, Mtime, Ctime, Btime unix.Timespec
	// HasBtime says that the file system keeps birth times: then device, inode
	// number and birth time tell a file from a later one with its inode number.
	HasBtime bool
}

// IsDir says whether the file is a directory.
func (i *Info) IsDir() bool { return i.kind() == unix.S_IFDIR }

// IsRegular says whether the file is a regular one.
func (i *Info) IsRegular() bool { return i.kind() == unix.S_IFREG }

// IsLink says whether the file is a symbolic link.
func (i *Info) IsLink() bool { return i.kind() == unix.S_IFLNK }

func (i *Info) kind() uint32 { return i.Mode & unix.S_IFMT }

// openable says why a file cannot be opened for its data, or nil.
func (i *Info) openable() error {
	switch i.kind() {
	case unix.S_IFREG:
		return nil
	case unix.S_IFDIR:
		return unix.EISDIR
	case unix.S_IFLNK:
		return ErrChanged
	case unix.S_IFIFO:
		return ErrPipe
	}
	return ErrSpecial
}

// fileID tells a file from every other one that exists at the same time.
type fileID struct{ dev, ino uint64 }

func (i *Info) id() fileID { return fileID{i.Dev, i.Ino} }

func infoOf(s *unix.Statx_t) Info {
	return Info{
		Dev: unix.Mkdev(s.Dev_major, s.Dev_minor), Ino: s.Ino,
		Mode: uint32(s.Mode), Nlink: s.Nlink, UID: s.Uid, GID: s.Gid,
		Rdev: unix.Mkdev(s.Rdev_major, s.Rdev_minor),
		Size: int64(s.Size), Blksize: int64(s.Blksize), Blocks: int64(s.Blocks),
		Atime: timespec(s.Atime), Mtime: timespec(s.Mtime),
		Ctime: timespec(s.Ctime), Btime: timespec(s.Btime),
		HasBtime: s.Mask&unix.STATX_BTIME != 0,
	}
}

func timespec(t unix.StatxTimestamp) unix.Timespec {
	return unix.Timespec{Sec: t.Sec, Nsec: int64(t.Nsec)}
}

// safeMode is the mode a file may be given: no identity goes with it. A directory
// keeps its group and sticky bits, which give nobody anything.
func safeMode(mode uint32, dir bool) uint32 {
	if dir {
		return mode & 0o3777
	}
	return mode & 0o1777
}
