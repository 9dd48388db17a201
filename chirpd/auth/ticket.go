package auth

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/md5" // the protocol names a ticket by this sum; it protects nothing
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/wire"
)

// Leeway is by how much a ticket outlives its expiry, so that clocks which differ
// a little do not end a job early.
const Leeway = time.Minute

// maxTicketFile bounds what is read of a ticket's file, in bytes; a ticket has some
// thousand.
const maxTicketFile = 1 << 20

// ticketBits is the size of the keys that NewTicket makes.
const ticketBits = 2048

// Ticket is the client's half of a ticket: a private key, and what is known of it.
// It is a secret: whoever has it has its rights.
type Ticket struct {
	Key     *rsa.PrivateKey
	Server  string    // host:port that it was made for; empty in files of other tools, which any server may see
	Subject string    // whose rights it lends; may be empty
	Expires time.Time // by the server's clock; zero when not known
}

// NewTicket makes a key of 2,048 bits for server (host:port).
func NewTicket(server string, expires time.Time) (*Ticket, error) {
	key, err := rsa.GenerateKey(rand.Reader, ticketBits)
	if err != nil {
		return nil, err
	}
	return &Ticket{Key: key, Server: server, Expires: expires}, nil
}

// PublicPEM is the public key as `openssl rsa -pubout` prints it.
func (t *Ticket) PublicPEM() []byte {
	der, err := x509.MarshalPKIXPublicKey(&t.Key.PublicKey)
	if err != nil {
		panic("auth: an RSA key cannot be marshalled: " + err.Error()) // MarshalPKIXPublicKey takes every *rsa.PublicKey
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// Digest names the ticket: the MD5 sum of PublicPEM in hexadecimal.
func (t *Ticket) Digest() string { return DigestOf(t.PublicPEM()) }

// DigestOf is the name of the ticket whose public key is publicPEM.
func DigestOf(publicPEM []byte) string {
	sum := md5.Sum(publicPEM)
	return hex.EncodeToString(sum[:])
}

// BoundTo reports whether the ticket may be shown to server (host:port, or a host
// at the default port). Names are compared, not addresses.
func (t *Ticket) BoundTo(server string) bool {
	return t.Server == "" || withPort(t.Server) == withPort(server)
}

func withPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err != nil {
		server = net.JoinHostPort(strings.Trim(server, "[]"), strconv.Itoa(wire.DefaultPort))
	}
	return strings.ToLower(server)
}

// Expired reports whether the ticket had ended, leeway included, at the time now.
func (t *Ticket) Expired(now time.Time) bool {
	return !t.Expires.IsZero() && now.After(t.Expires.Add(Leeway))
}

// Format is the ticket as a file: comment lines that say what it is, and the key.
func (t *Ticket) Format() []byte {
	var b bytes.Buffer
	b.WriteString("# Chirp ticket. Whoever has this file has its rights: keep it private.\n")
	fmt.Fprintf(&b, "# digest %s\n", t.Digest())
	if t.Server != "" {
		fmt.Fprintf(&b, "# server %s\n", t.Server)
	}
	if t.Subject != "" {
		fmt.Fprintf(&b, "# subject %s\n", t.Subject)
	}
	if !t.Expires.IsZero() {
		fmt.Fprintf(&b, "# expires %d\n", t.Expires.Unix())
	}
	_ = pem.Encode(&b, &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(t.Key)}) // a Buffer takes all
	return b.Bytes()
}

// ParseTicket reads what Format wrote, and ticket files of the real tools.
func ParseTicket(text []byte) (*Ticket, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("not a ticket: it holds no PEM private key")
	}
	key, err := parseKey(block)
	if err != nil {
		return nil, fmt.Errorf("not a ticket: %w", err)
	}
	t := &Ticket{Key: key}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if comment, ok := strings.CutPrefix(lines.Text(), "#"); ok {
			if err := t.comment(strings.Fields(comment)); err != nil {
				return nil, err
			}
		}
	}
	return t, lines.Err()
}

// comment takes what a comment line says in words that Format uses.
func (t *Ticket) comment(words []string) error {
	if len(words) != 2 {
		return nil
	}
	switch words[0] {
	case "server":
		t.Server = words[1]
	case "subject":
		t.Subject = words[1]
	case "expires":
		seconds, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return fmt.Errorf("ticket's expiry %.40q is not a number of seconds since 1970", words[1])
		}
		t.Expires = time.Unix(seconds, 0)
	}
	return nil
}

func parseKey(block *pem.Block) (*rsa.PrivateKey, error) {
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	rsaKey, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a %T is not an RSA key", key)
	}
	return rsaKey, nil
}

// LoadTicket reads a ticket file. One that others may read is refused.
func LoadTicket(path string) (*Ticket, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("ticket %s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTicketFile))
	if err != nil {
		return nil, err
	}
	t, err := ParseTicket(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("ticket %s may be read by others (mode %04o); run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return t, nil
}

// Save writes the ticket file with mode 0600, whatever was there before, whole or
// not at all.
func (t *Ticket) Save(path string) error { return writePrivate(path, t.Format()) }

// writePrivate publishes a file with mode 0600 by one rename, on disk. A file that
// was there does not lend it its mode.
func writePrivate(path string, data []byte) error {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer f.Cleanup() // does nothing once the file has its name
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir has the names in a directory on disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Method is the ticket as a way to authenticate.
func (t *Ticket) Method() Method { return ticketMethod{t} }

type ticketMethod struct{ *Ticket }

func (ticketMethod) Name() string { return "ticket" }

func (m ticketMethod) Prove(_ context.Context, s *Stream, server string) error {
	if !m.BoundTo(server) {
		if err := s.send("=="); err != nil {
			return err
		}
		return fmt.Errorf("%w: the ticket was made for %s", errRefused, m.Server)
	}
	if err := s.send(m.Digest()); err != nil {
		return err
	}
	head, err := s.line()
	if err != nil {
		return err
	}
	if head == "declined" {
		return m.giveUp(s, "it does not know the ticket, or the ticket expired")
	}
	if err := m.sign(s, head); err != nil {
		return err
	}
	switch verdict, err := s.line(); {
	case err != nil:
		return err
	case verdict != "success":
		return m.giveUp(s, "the signature was not accepted")
	}
	return nil
}

// giveUp says that there is no other ticket, which ends the method.
func (ticketMethod) giveUp(s *Stream, reason string) error {
	if err := s.send("=="); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", errRefused, reason)
}

func (m ticketMethod) sign(s *Stream, head string) error {
	challenge, err := s.blob(head)
	if err != nil {
		return fmt.Errorf("ticket challenge: %w", err)
	}
	if len(challenge) != challengeSize { // whatever else it may be, we do not sign it
		return fmt.Errorf("ticket challenge has %d bytes, not %d", len(challenge), challengeSize)
	}
	signature, err := rsa.SignPKCS1v15(nil, m.Key, crypto.Hash(0), challenge)
	if err != nil {
		return fmt.Errorf("signing the challenge: %w", err)
	}
	return s.sendBlob(signature)
}
