package auth

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keepExpired is for how long an expired ticket is still listed, so that its
// owner can see that it expired. After that it is removed.
const keepExpired = 24 * time.Hour

// minKeyBits is the smallest key that is taken: that of the real tools' tickets.
const minKeyBits = 1024

// ErrNoTicket says that no ticket of that digest is registered.
var ErrNoTicket = fmt.Errorf("no such ticket: %w", fs.ErrNotExist)

// Registered is the server's half of a ticket.
type Registered struct {
	Subject   string // whose rights it lends
	PublicPEM []byte
	Expires   time.Time
	Rights    []TicketRight // masks of directories; the deepest that holds a path counts
	Parent    string        // digest of the ticket by which it was made, or ""
}

// TicketRight is a ticket's mask at a directory of the export and all below it.
type TicketRight struct{ Path, Rights string }

// Expired reports whether the ticket had ended, leeway included, at the time now.
func (r *Registered) Expired(now time.Time) bool { return now.After(r.Expires.Add(Leeway)) }

func (r *Registered) publicKey() (*rsa.PublicKey, error) {
	block, _ := pem.Decode(r.PublicPEM)
	if block == nil {
		return nil, errors.New("the ticket's key is not in PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok || key.N.BitLen() < minKeyBits {
		return nil, fmt.Errorf("the ticket's key is not an RSA key of at least %d bits", minKeyBits)
	}
	return key, nil
}

// Store is a server's register of tickets: a file for each in a directory, read
// again when it changed, so that a ticket may be removed by hand. Files of the
// real server's form and name are understood. It is safe for concurrent use.
type Store struct {
	dir    string
	prefix string // of the files' names, before the digest
	left   *Store // where tickets are found that are not in dir; may be nil
	export *exportRules

	change sync.Mutex // serialises changes of the files; held across the disk
	mu     sync.Mutex // guards cache; never held across the disk
	cache  map[string]cached
}

type cached struct {
	Registered
	stamp stamp
}

// stamp tells whether a file is still the one that was read.
type stamp struct {
	ino         uint64
	size        int64
	mtime, ctim syscall.Timespec
}

// OpenStore opens the register in dir, which is made with mode 0700 if missing.
func OpenStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Store{dir: dir, prefix: "ticket.", cache: make(map[string]cached)}, nil
}

// OpenExportStore opens the tickets that a real chirp_server left in the root of
// an export, to be read there and, unless readOnly is set, ended there. Nothing is made.
// Files that others than the server's user, root or the owner of the directory have
// made, or could write, are no tickets.
func OpenExportStore(root string, readOnly bool) (*Store, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	owners := []uint32{0, uint32(os.Geteuid()), info.Sys().(*syscall.Stat_t).Uid}
	return &Store{dir: root, prefix: ".__ticket.", cache: make(map[string]cached),
		export: &exportRules{owners, readOnly}}, nil
}

// exportRules say which files in an export are tickets.
type exportRules struct {
	owners   []uint32
	readOnly bool
}

// With adds the tickets of another store, which are read, listed and deleted there, and
// changed in s. It must be called before s is used.
func (s *Store) With(left *Store) { s.left = left }

// trusts says whether a file is one that the server has made.
func (s *Store) trusts(info *syscall.Stat_t) bool {
	return s.export == nil ||
		info.Mode&syscall.S_IFMT == syscall.S_IFREG && info.Mode&0o022 == 0 && slices.Contains(s.export.owners, info.Uid)
}

var digestForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

func (s *Store) file(digest string) string { return filepath.Join(s.dir, s.prefix+digest) }

// Register adds a ticket without any rights (`/ n`), or replaces the one with the
// same key when it is the same subject's, and returns its digest. It is on disk
// when Register returns.
func (s *Store) Register(subject string, publicPEM []byte, expires time.Time) (string, error) {
	return s.register(Registered{Subject: subject, PublicPEM: publicPEM, Expires: expires})
}

// RegisterUnder is Register for a ticket that is made by means of another one, whose
// digest is parent: it has the same owner, ends when that ends, and lends no more.
func (s *Store) RegisterUnder(parent string, publicPEM []byte, expires time.Time) (string, error) {
	chain, err := s.Chain(parent)
	if err != nil {
		return "", err
	}
	if len(chain) >= maxChain {
		return "", fmt.Errorf("%w: a ticket made by %d others may not make one more", fs.ErrPermission, len(chain)-1)
	}
	if expires.After(chain[0].Expires) {
		expires = chain[0].Expires
	}
	return s.register(Registered{Subject: chain[0].Subject, PublicPEM: publicPEM, Expires: expires, Parent: parent})
}

func (s *Store) register(r Registered) (string, error) {
	r.Rights = []TicketRight{{"/", "n"}}
	if _, err := r.publicKey(); err != nil {
		return "", fmt.Errorf("%w: %w", fs.ErrInvalid, err)
	}
	digest := DigestOf(r.PublicPEM)
	s.change.Lock()
	defer s.change.Unlock()
	s.sweep(time.Now())
	if old, err := s.Get(digest); err == nil && (old.Subject != r.Subject || old.Parent != r.Parent) {
		return "", fmt.Errorf("ticket %s is somebody else's: %w", digest, fs.ErrExist)
	}
	return digest, s.put(digest, r)
}

// Modify sets the ticket's mask at path (clean, from the export's root).
func (s *Store) Modify(digest, path, rights string) error {
	s.change.Lock()
	defer s.change.Unlock()
	r, err := s.Get(digest)
	if err != nil {
		return err
	}
	r.Rights = slices.DeleteFunc(slices.Clone(r.Rights), func(t TicketRight) bool { return t.Path == path })
	r.Rights = append(r.Rights, TicketRight{path, rights})
	slices.SortFunc(r.Rights, func(a, b TicketRight) int { return strings.Compare(a.Path, b.Path) })
	return s.put(digest, r)
}

// maxChain bounds how many tickets may be made one by another.
const maxChain = 8

// Chain is a ticket, and then those by which it was made: the one by which each was
// made follows it. Where one of them is no longer there, it is ErrNoTicket. All lend
// only what each of them lends.
func (s *Store) Chain(digest string) ([]Registered, error) {
	r, err := s.Get(digest)
	if err != nil {
		return nil, err
	}
	chain := []Registered{r}
	for r.Parent != "" {
		if len(chain) >= maxChain {
			return nil, fmt.Errorf("ticket %s: too long a chain", digest)
		}
		if r, err = s.Get(r.Parent); err != nil {
			return nil, fmt.Errorf("the ticket by which ticket %s was made: %w", digest, err)
		}
		if r.Subject != chain[0].Subject {
			return nil, fmt.Errorf("ticket %s was made by another subject's: %w", digest, ErrNoTicket)
		}
		chain = append(chain, r)
	}
	return chain, nil
}

// Get finds a ticket, expired or not; ErrNoTicket when there is none. The caller
// must not change what it holds.
func (s *Store) Get(digest string) (Registered, error) {
	r, err := s.get(digest)
	if s.left != nil && errors.Is(err, ErrNoTicket) {
		return s.left.Get(digest)
	}
	return r, err
}

func (s *Store) get(digest string) (Registered, error) {
	if !digestForm.MatchString(digest) {
		return Registered{}, ErrNoTicket
	}
	info, err := os.Lstat(s.file(digest))
	if errors.Is(err, fs.ErrNotExist) {
		s.forget(digest)
		return Registered{}, ErrNoTicket
	}
	if err != nil {
		return Registered{}, err
	}
	st := info.Sys().(*syscall.Stat_t)
	if !s.trusts(st) {
		return Registered{}, ErrNoTicket
	}
	s.mu.Lock()
	c, ok := s.cache[digest]
	s.mu.Unlock()
	if ok && c.stamp == stampOf(st) {
		return c.Registered, nil
	}
	return s.read(digest)
}

func stampOf(st *syscall.Stat_t) stamp { return stamp{st.Ino, st.Size, st.Mtim, st.Ctim} }

// read takes a ticket from its file. What is trusted, read and remembered is one
// descriptor's: names in an export may be swapped meanwhile.
func (s *Store) read(digest string) (Registered, error) {
	f, err := os.OpenFile(s.file(digest), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return Registered{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Registered{}, err
	}
	st := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || !s.trusts(st) {
		return Registered{}, ErrNoTicket
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTicketFile+1))
	if err == nil && len(text) > maxTicketFile { // what is left out might lend less
		err = &fs.PathError{Op: "read", Path: s.file(digest), Err: syscall.EFBIG}
	}
	if err != nil {
		return Registered{}, err
	}
	r, err := parseRegistered(text)
	if err == nil && DigestOf(r.PublicPEM) != digest {
		err = errors.New("the key is not the one that the name says")
	}
	if err != nil {
		return Registered{}, fmt.Errorf("%s: %w", s.file(digest), err)
	}
	s.mu.Lock()
	s.cache[digest] = cached{r, stampOf(st)}
	s.mu.Unlock()
	return r, nil
}

func (s *Store) forget(digest string) {
	s.mu.Lock()
	delete(s.cache, digest)
	s.mu.Unlock()
}

// List is the digests of a subject's tickets, or of everyone's for "all", sorted.
func (s *Store) List(subject string) ([]string, error) {
	var list []string
	digests, err := s.digests()
	if s.left != nil {
		more, e := s.left.digests()
		digests, err = append(digests, more...), errors.Join(err, e)
		slices.Sort(digests)
		digests = slices.Compact(digests)
	}
	for _, digest := range digests {
		if r, err := s.Get(digest); err == nil && (subject == "all" || r.Subject == subject) {
			list = append(list, digest)
		}
	}
	return list, err
}

// Delete ends a ticket.
func (s *Store) Delete(digest string) error {
	s.change.Lock()
	defer s.change.Unlock()
	if s.left != nil { // first: it must not come to light again
		if err := s.left.Delete(digest); err != nil && !errors.Is(err, ErrNoTicket) {
			return err
		} else if err == nil {
			return s.remove(digest, nil)
		}
	}
	_, err := s.get(digest)
	return s.remove(digest, err)
}

// remove removes the file of a ticket of s itself, if err, from looking for it, is nil.
func (s *Store) remove(digest string, err error) error {
	if err != nil {
		return err
	}
	if s.export != nil && s.export.readOnly {
		return &fs.PathError{Op: "delete", Path: s.file(digest), Err: syscall.EROFS}
	}
	s.forget(digest)
	if err := os.Remove(s.file(digest)); err != nil && (s.left == nil || !errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	return nil
}

func (s *Store) digests() ([]string, error) {
	entries, err := os.ReadDir(s.dir) // sorted
	var list []string
	for _, e := range entries {
		if digest, ok := strings.CutPrefix(e.Name(), s.prefix); ok && digestForm.MatchString(digest) {
			list = append(list, digest)
		}
	}
	return list, err
}

// sweep removes tickets that expired long ago. What cannot be read is left.
func (s *Store) sweep(now time.Time) {
	digests, _ := s.digests()
	for _, digest := range digests {
		if r, err := s.get(digest); err == nil && now.After(r.Expires.Add(keepExpired)) {
			s.forget(digest)
			_ = os.Remove(s.file(digest))
		}
	}
}

func (s *Store) put(digest string, r Registered) error {
	text := r.format()
	if len(text) > maxTicketFile {
		return &fs.PathError{Op: "write", Path: s.file(digest), Err: syscall.EFBIG}
	}
	s.forget(digest)
	return writePrivate(s.file(digest), text)
}

// format is the real server's form of a ticket.
func (r *Registered) format() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "subject %s\n", quoted(r.Subject))
	if r.Parent != "" { // early: what is torn must not lend more
		fmt.Fprintf(&b, "parent %s\n", quoted(r.Parent))
	}
	fmt.Fprintf(&b, "ticket %s\nexpiration \"%d\"\n", quoted(string(r.PublicPEM)), r.Expires.Unix())
	for _, t := range r.Rights {
		fmt.Fprintf(&b, "rights %s %s\n", quoted(t.Path), quoted(t.Rights))
	}
	return b.Bytes()
}
