package chirpd_test

import (
	"strings"
	"testing"
)

// TestPutsDoNotOverfill lets a put begin in the place of a file, and takes from it what
// it counted on before it ends.
func TestPutsDoNotOverfill(t *testing.T) {
	for name, meanwhile := range map[string]func(p *peer){
		"the file is removed, and its space taken": func(p *peer) {
			p.want("0", "unlink /f")
			if got := p.puts("/g", 900); got != "900" {
				t.Fatal(got)
			}
		},
		"the file is open elsewhere, and stays on disk": func(p *peer) {
			p.want("0", "open /f rw 0")
			p.line()
			p.want("0", "ftruncate 0 900")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, quota(1000))
			owner, putter := s.as("owner"), s.as("owner")
			owner.puts("/f", 600)
			putter.want("0", "putfile /f 420 600")
			meanwhile(owner)
			putter.send(strings.Repeat("x", 600))
			if got := putter.line(); got != "-6" {
				t.Fatalf("the put is answered %s with 900 of 1000 bytes in use", got)
			}
			owner.alloc("/", "/", 1000, 900)
		})
	}
}

// TestEmptyingDoesNotRead has somebody who may only write empty a file of an allocation,
// and ask for what others write there later.
func TestEmptyingDoesNotRead(t *testing.T) {
	s := serve(t, quota(1000))
	owner, writer := s.as("owner"), s.as("writer")
	owner.want("0", "setacl / unix:owner rwlda")
	owner.want("0", "setacl / unix:writer w")
	owner.puts("/f", 6)
	writer.want("0", "open /f wt 420")
	writer.line()
	owner.want("0", "open /f w 0")
	owner.line()
	owner.want("6", "pwrite 0 6 0\nsecret")
	writer.want("-12", "pread 0 6 0")
	writer.want("4", "pwrite 0 4 0\nmine")
}
