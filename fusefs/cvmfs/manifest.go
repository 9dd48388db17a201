package cvmfs

import (
	"strconv"
	"time"
)

// manifest is what .cvmfspublished says.
type manifest struct {
	name     string
	catalog  object        // the root catalog
	size     int64         // of the root catalog, or unknown
	alt      bool          // the root catalog is to be had by its alternative name
	cert     object        // the certificate that signed
	revision uint64        // counts up
	ttl      time.Duration // after which a newer manifest is to be looked for
	time     time.Time     // of publication; zero when not said
}

// rootHash is the MD5 of the empty path, in digits.
const rootHash = "d41d8cd98f00b204e9800998ecf8427e"

// parseManifest reads a manifest; its signature is checked apart.
func parseManifest(lines []string) (*manifest, error) {
	values := make(map[byte]string)
	for _, line := range lines {
		if line == "" {
			return nil, bad(ErrUntrusted, "it has an empty line")
		}
		if _, ok := values[line[0]]; ok {
			return nil, bad(ErrUntrusted, "it has two lines %c", line[0])
		}
		values[line[0]] = line[1:]
	}
	for _, key := range []byte("CRDSNX") {
		if _, ok := values[key]; !ok {
			return nil, bad(ErrUntrusted, "its line %c is missing", key)
		}
	}
	if values['R'] != rootHash {
		return nil, bad(ErrUntrusted, "it is not that of a whole repository")
	}
	return fillManifest(values)
}

// fillManifest makes sense of the lines, which are by their letters.
func fillManifest(values map[byte]string) (*manifest, error) {
	m := &manifest{name: values['N'], alt: values['A'] == "yes", size: unknown}
	var err error
	number := func(key byte) uint64 {
		text, ok := values[key]
		if !ok {
			return 0
		}
		n, e := strconv.ParseUint(text, 10, 63)
		if e != nil {
			err = bad(ErrUntrusted, "its line %c is no number", key)
		}
		return n
	}
	m.revision = number('S')
	m.ttl = time.Duration(min(number('D'), 1<<30)) * time.Second
	if n := number('B'); n > 0 {
		m.size = int64(n)
	}
	if t := number('T'); t > 0 {
		m.time = time.Unix(int64(t), 0)
	}
	if err != nil {
		return nil, err
	}
	if m.catalog, err = parseObject(values['C'], catalogObj); err == nil {
		m.cert, err = parseObject(values['X'], certificate)
	}
	if err != nil {
		return nil, &badData{err}
	}
	return m, nil
}

// openManifest takes a manifest apart and checks its hash and its name.
func openManifest(text []byte, name string) (*manifest, letter, error) {
	l, err := openLetter(text)
	if err != nil {
		return nil, l, err
	}
	m, err := parseManifest(l.lines())
	if err != nil {
		return nil, l, err
	}
	if m.name != name {
		return nil, l, bad(ErrUntrusted, "it is that of %q", m.name)
	}
	return m, l, nil
}
