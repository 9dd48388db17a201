package chirpd

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/auth"
)

// Catalog says to whom a Server announces itself, and as what. The zero value: to
// nobody.
type Catalog struct {
	// Hosts are the catalog servers, host or host:port. Port 9097 unless told.
	Hosts []string
	// Interval is the time between two announcements. Default 5 minutes.
	Interval time.Duration
	// TCP sends announcements over TCP, to the next port, instead of UDP.
	TCP bool
	// Name is the name to announce. Default: the host's.
	Name string
	// Owner is whose server this is. Default: the user who runs it.
	Owner string
	// Project is what it belongs to; may be empty.
	Project string
	// Version is the software's version. Default: "skeletonkey".
	Version string
}

// The catalog server's port unless told, and how long an announcement may take.
const (
	catalogPort    = 9097
	catalogTimeout = 15 * time.Second
)

// uuidName is the file of the state that keeps the server's identity in catalogs.
const uuidName = "uuid"

// announcement is what a catalog is told. The names are the protocol's.
type announcement struct {
	Type        string  `json:"type"`
	Name        string  `json:"name"`
	Port        int     `json:"port"`
	Owner       string  `json:"owner"`
	URL         string  `json:"url"`
	Version     string  `json:"version"`
	UUID        string  `json:"uuid"`
	Project     string  `json:"project,omitempty"`
	Backend     string  `json:"backend"`
	StartTime   int64   `json:"starttime"`
	Uptime      int64   `json:"uptime"`
	Total       int64   `json:"total"`
	Avail       int64   `json:"avail"`
	MinFree     int64   `json:"minfree"`
	Load1       float64 `json:"load1"`
	Load5       float64 `json:"load5"`
	Load15      float64 `json:"load15"`
	MemoryTotal int64   `json:"memory_total"`
	MemoryAvail int64   `json:"memory_avail"`
	CPUs        int     `json:"cpus"`
	CPU         string  `json:"cpu"`
	OS          string  `json:"opsys"`
	OSVersion   string  `json:"opsysversion"`
	BytesRead   int64   `json:"bytes_read"`
	BytesWrit   int64   `json:"bytes_written"`
	TotalOps    int64   `json:"total_ops"`
}

// announce tells the catalogs of a listener until ctx ends. What fails is logged and
// tried again at the next time.
func (s *Server) announce(ctx context.Context, l net.Listener) {
	c := s.conf.Catalog
	addr, ok := l.Addr().(*net.TCPAddr)
	if len(c.Hosts) == 0 || !ok {
		return
	}
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	for {
		text, err := json.Marshal(s.announcement(addr.Port))
		for _, host := range c.Hosts {
			if err == nil {
				err = c.send(ctx, host, text)
			}
			if err != nil && ctx.Err() == nil {
				s.conf.Log.Warn("cannot tell the catalog of this server; trying again", "catalog", host, "in", c.Interval, "err", err)
			}
			err = nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// send sends one announcement to one catalog.
func (c *Catalog) send(ctx context.Context, host string, text []byte) error {
	name, port := host, catalogPort
	if h, p, err := net.SplitHostPort(host); err == nil {
		name = h
		if port, err = strconv.Atoi(p); err != nil {
			return fmt.Errorf("catalog %s: %w", host, err)
		}
	}
	network := "udp"
	if c.TCP {
		network, port = "tcp", port+1
	}
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(name, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(catalogTimeout)); err != nil {
		return err
	}
	_, err = conn.Write(text)
	return err
}

func (s *Server) announcement(port int) *announcement {
	c := s.conf.Catalog
	a := &announcement{
		Type: "chirp", Name: c.Name, Port: port, Owner: c.Owner, Version: c.Version, Project: c.Project, UUID: s.uuid,
		URL: fmt.Sprintf("chirp://%s:%d", c.Name, port), Backend: "local://" + s.backend(),
		StartTime: s.began.Unix(), Uptime: int64(time.Since(s.began).Seconds()), MinFree: s.conf.FreeSpace,
		CPUs: runtime.NumCPU(), CPU: runtime.GOARCH, OS: runtime.GOOS,
		BytesRead: s.total.sent.Load(), BytesWrit: s.total.received.Load(), TotalOps: s.total.requests.Load(),
	}
	for _, x := range s.exports {
		if st, err := x.space(); err == nil {
			a.Total += int64(st.Blocks) * st.Bsize
			a.Avail += int64(st.Bavail) * st.Bsize
		}
	}
	a.host()
	return a
}

// backend is what is exported, for people.
func (s *Server) backend() string {
	if s.front == nil {
		return s.conf.Root
	}
	var names []string
	for _, x := range s.exports {
		names = append(names, x.name)
	}
	return strings.Join(names, ",")
}

// host fills in what is known of the machine.
func (a *announcement) host() {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		const scale = 1 << 16
		unit := int64(info.Unit)
		a.Load1, a.Load5, a.Load15 = float64(info.Loads[0])/scale, float64(info.Loads[1])/scale, float64(info.Loads[2])/scale
		a.MemoryTotal, a.MemoryAvail = int64(info.Totalram)*unit, int64(info.Freeram+info.Bufferram)*unit
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		a.CPU, a.OS = unix.ByteSliceToString(name.Machine[:]), strings.ToLower(unix.ByteSliceToString(name.Sysname[:]))
		a.OSVersion = unix.ByteSliceToString(name.Release[:])
	}
}

// setDefaults is part of Config's.
func (c *Catalog) setDefaults() {
	setDefault(&c.Interval, 5*time.Minute) // the names are read only where there are hosts
	if len(c.Hosts) == 0 {
		return
	}
	if c.Name == "" {
		c.Name, _ = os.Hostname() // an empty name says as much as an error would
	}
	if c.Owner == "" {
		c.Owner = auth.UserName(uint32(os.Geteuid()))
	}
	if c.Version == "" {
		c.Version = "skeletonkey"
	}
}

// identify finds or makes the name by which catalogs know this server again.
func (s *Server) identify() error {
	file := filepath.Join(s.conf.StateDir, uuidName)
	if s.conf.StateDir != "" {
		text, err := os.ReadFile(file)
		if id := strings.TrimSpace(string(text)); err == nil && id != "" {
			s.uuid = id
			return nil
		}
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s.uuid = fmt.Sprintf("%X-%X-%X-%X-%X", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	if s.conf.StateDir == "" {
		return nil
	}
	if err := os.MkdirAll(s.conf.StateDir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(s.uuid+"\n"), 0o600)
}
