package auth

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestHugeTicketFile has masks beyond what is read of a ticket's file: without them the
// ticket would lend more.
func TestHugeTicketFile(t *testing.T) {
	s := openStore(t, shared())
	digest := shared().Digest()
	if err := s.Modify(digest, "/", "rwl"); err != nil {
		t.Fatal(err)
	}
	if err := s.Modify(digest, "/"+strings.Repeat("d", maxTicketFile), "n"); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("a mask that makes the file too large: %v", err)
	}
	if r, err := s.Get(digest); err != nil || len(r.Rights) != 1 {
		t.Errorf("afterwards: %d masks, %v", len(r.Rights), err)
	}
	text, err := os.ReadFile(s.file(digest))
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, bytes.Repeat([]byte(" "), maxTicketFile-len(text))...)
	if err := os.WriteFile(s.file(digest), append(text, "rights \"/data\" \"n\"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Get(digest); err == nil {
		t.Errorf("half a file lends %v", r.Rights)
	}
}
