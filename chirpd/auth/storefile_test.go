package auth

import (
	"reflect"
	"strings"
	"testing"
)

// realFile has the form in which chirp_server of cctools 9.9 keeps a ticket.
const realFile = `subject "unix:root"
ticket "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAsE6/ct4jVdyse01iaZYA
-----END PUBLIC KEY-----
"
expiration "1796056365"
rights "/" "n"
rights "/data" "rl"
`

func TestRealTicketFile(t *testing.T) {
	r, err := parseRegistered([]byte(realFile))
	if err != nil {
		t.Fatal(err)
	}
	if r.Subject != "unix:root" || r.Expires.Unix() != 1796056365 || !strings.HasPrefix(string(r.PublicPEM), "-----BEGIN") ||
		!reflect.DeepEqual(r.Rights, []TicketRight{{"/", "n"}, {"/data", "rl"}}) {
		t.Errorf("%+v", r)
	}
	if got := string(r.format()); got != realFile {
		t.Errorf("written back as\n%s", got)
	}
}

func TestDamagedTicketLendsNothing(t *testing.T) {
	complete := strings.Index(realFile, "rights")
	for n := range len(realFile) {
		r, err := parseRegistered([]byte(realFile[:n]))
		if err == nil && n < complete-1 {
			t.Errorf("torn after %d bytes: %+v", n, r)
		}
		if err != nil && r.Subject != "" {
			t.Errorf("torn after %d bytes: an error and a ticket, %+v", n, r)
		}
	}
	for _, text := range []string{realFile + "admin \"yes\"\n", realFile + `"x"`, strings.Replace(realFile, "1796", "soon", 1)} {
		if r, err := parseRegistered([]byte(text)); err == nil {
			t.Errorf("%q gives %+v", text, r)
		}
	}
}

func FuzzParseRegistered(f *testing.F) {
	f.Add([]byte(realFile))
	f.Add([]byte(`rights "a\"b" "r" expiration "1"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseRegistered(text)
		if err != nil {
			return
		}
		if back, err := parseRegistered(r.format()); err != nil || !reflect.DeepEqual(back, r) {
			t.Fatalf("%+v came back as %+v, %v", r, back, err)
		}
	})
}

func FuzzParseTicket(f *testing.F) {
	f.Add(shared().Format())
	f.Add([]byte("# server h:1\n# expires x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tk, err := ParseTicket(text)
		if err == nil && tk.Key == nil {
			t.Fatal("a ticket without a key")
		}
	})
}
