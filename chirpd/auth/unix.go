package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultChallengeDir is where unix challenges lie unless both sides agree on
// another directory; so in the real server.
const DefaultChallengeDir = "/tmp"

// challengeName is the agreed form of a challenge's name: that of the real
// server (challenge.PID.RANDOM) and of ours.
var challengeName = regexp.MustCompile(`^challenge\.[0-9A-Za-z.]{1,100}$`)

type unixMethod struct{ dir string }

// Unix proves the user's identity by making a file of the server's choice in dir
// (empty: DefaultChallengeDir), which client and server must share.
func Unix(dir string) Method {
	if dir == "" {
		dir = DefaultChallengeDir
	}
	return unixMethod{filepath.Clean(dir)}
}

func (unixMethod) Name() string { return "unix" }

func (m unixMethod) Prove(_ context.Context, s *Stream, _ string) error {
	challenge, err := s.line()
	if err != nil {
		return err
	}
	if err := m.answer(challenge); err != nil {
		if sendErr := s.send("no"); sendErr != nil {
			return sendErr
		}
		return fmt.Errorf("%w: %v", errRefused, err)
	}
	defer func() { _ = os.Remove(challenge) }() // gone already where the server may remove it
	if err := s.send("yes"); err != nil {
		return err
	}
	return s.expectYes("it did not find our answer " + challenge)
}

// answer makes the file, if its path is one that this side agreed to.
func (m unixMethod) answer(challenge string) error {
	if filepath.Dir(challenge) != m.dir || !challengeName.MatchString(filepath.Base(challenge)) {
		return fmt.Errorf("the server's challenge %.200q is not a file challenge.* in %s", challenge, m.dir)
	}
	f, err := os.OpenFile(challenge, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

type unixVerifier struct {
	dir  string
	wait time.Duration
	name func(uid uint32) string
}

// UnixVerifier takes the owner of a challenge file in dir as the client's name:
// the user's name, or the number where it has none. It waits up to wait for the
// file to appear, for network file systems.
func UnixVerifier(dir string, wait time.Duration) Verifier {
	return unixVerifier{filepath.Clean(dir), wait, UserName}
}

// UnixVerifierNamed is UnixVerifier with names from elsewhere: name gives that of a user.
func UnixVerifierNamed(dir string, wait time.Duration, name func(uid uint32) string) Verifier {
	return unixVerifier{filepath.Clean(dir), wait, name}
}

// PasswdNames reads a file of the form of /etc/passwd. Who is not in it has the number as
// name.
func PasswdNames(file string) (func(uid uint32) string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if f := strings.SplitN(line, ":", 4); len(f) == 4 && f[0] != "" && names[f[2]] == "" {
			names[f[2]] = f[0]
		}
	}
	return func(uid uint32) string {
		id := strconv.FormatUint(uint64(uid), 10)
		return cmp.Or(names[id], id)
	}, nil
}

func (unixVerifier) Name() string { return "unix" }

func (v unixVerifier) Verify(ctx context.Context, s *Stream, _ net.Addr) (string, error) {
	challenge := filepath.Join(v.dir, "challenge."+rand.Text())
	if _, err := os.Lstat(challenge); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot make a challenge in %s: %v", v.dir, err)
	}
	if err := s.send(challenge); err != nil {
		return "", err
	}
	answer, err := s.line()
	if err != nil {
		return "", err
	}
	if answer != "yes" { // the client's no is not answered
		return "", fmt.Errorf("%w: the client would not make %s", errRefused, challenge)
	}
	answered, err := v.await(ctx, challenge)
	if err != nil {
		return "", s.refuse("%v", err)
	}
	_ = os.Remove(challenge) // where the directory's rights allow; the client removes it too
	if err := checkAnswer(answered); err != nil {
		return "", s.refuse("%s: %v", challenge, err)
	}
	return v.name(answered.Uid), s.send("yes")
}

// await looks for the file until it is there or the wait is over.
func (v unixVerifier) await(ctx context.Context, challenge string) (*unix.Statx_t, error) {
	ctx, cancel := context.WithTimeout(ctx, v.wait)
	defer cancel()
	for pause := time.Millisecond; ; pause *= 2 {
		answered, err := examine(challenge)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return answered, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(min(pause, 200*time.Millisecond)):
		}
	}
}

// examine is Lstat with the time of birth, where the file system tells it.
func examine(path string) (*unix.Statx_t, error) {
	for {
		var st unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
		if err == nil {
			return &st, nil
		}
		if err != unix.EINTR {
			return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
	}
}

// answerAge is how long after its birth an answer may have been changed: whoever makes it
// does nothing more to it. Both times are by the clock of the file's host.
const answerAge = time.Second

// checkAnswer refuses what somebody else may have put in place: a link to, or
// another name of, a file of the user whom he pretends to be, or such a file itself, from
// a directory of his own: renaming it is a change.
func checkAnswer(st *unix.Statx_t) error {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("is not a regular file (mode %o)", st.Mode)
	case st.Size != 0:
		return fmt.Errorf("is not empty")
	case st.Nlink != 1:
		return fmt.Errorf("has %d links", st.Nlink)
	case st.Mask&unix.STATX_BTIME != 0 && timeOf(st.Ctime).Sub(timeOf(st.Btime)) > answerAge:
		return fmt.Errorf("is not new: made at %v", timeOf(st.Btime))
	}
	return nil
}

func timeOf(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// UserName is the name of a local user as UnixVerifier gives it: the number where there
// is no name.
func UserName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil && u.Username != "" {
		return u.Username
	}
	return id
}
