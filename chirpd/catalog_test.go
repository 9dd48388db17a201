package chirpd_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/chirptest"
)

// TestAnnouncement reads what a catalog is told, while another one cannot be reached.
func TestAnnouncement(t *testing.T) {
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	s := serve(t, func(c *chirpd.Config) {
		c.Catalog = chirpd.Catalog{Hosts: []string{"127.0.0.1:1", u.LocalAddr().String()}, Interval: 50 * time.Millisecond,
			Name: "some.host", Owner: "alice", Project: "p"}
	})
	s.as("owner").want("0", "mkdir /d 493")
	var first string
	for deadline := time.Now().Add(20 * time.Second); ; {
		_ = u.SetReadDeadline(deadline)
		b := make([]byte, 64<<10)
		n, _, err := u.ReadFrom(b)
		if err != nil {
			t.Fatal(err)
		}
		var a map[string]any
		if err := json.Unmarshal(b[:n], &a); err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(s.addr)
		for key, want := range map[string]any{"type": "chirp", "name": "some.host", "owner": "alice", "project": "p", "url": "chirp://some.host:" + port} {
			if a[key] != want {
				t.Fatalf("%s is %v, want %v", key, a[key], want)
			}
		}
		if a["total"].(float64) <= 0 || a["cpus"].(float64) < 1 || a["memory_total"].(float64) <= 0 {
			t.Fatalf("%v", a)
		}
		if first == "" {
			first = a["uuid"].(string)
		}
		if a["uuid"] != first {
			t.Fatalf("uuid %v, was %s", a["uuid"], first)
		}
		if a["total_ops"].(float64) >= 1 {
			break
		}
	}
	kept, err := os.ReadFile(filepath.Join(s.state, "uuid"))
	if strings.TrimSpace(string(kept)) != first {
		t.Errorf("kept is %q (%v), told %s", kept, err, first)
	}
}

// freePair finds a port that is free together with the next one, for TCP.
func freePair(t *testing.T) int {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		next, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+1))
		l.Close()
		if err == nil {
			next.Close()
			return port
		}
	}
	t.Fatal("no two ports are free")
	return 0
}

// TestRealCatalog shows a server in a real catalog, by both protocols.
func TestRealCatalog(t *testing.T) {
	for _, program := range []string{"catalog_server", "chirp_status"} {
		if _, err := exec.LookPath(program); err != nil {
			chirptest.Missing(t, "no "+program+" here (Debian package coop-computing-tools)")
		}
	}
	for name, tcp := range map[string]bool{"udp": false, "tcp": true} {
		t.Run(name, func(t *testing.T) {
			addr := "127.0.0.1:" + strconv.Itoa(freePair(t))
			_, port, _ := net.SplitHostPort(addr)
			dir := t.TempDir()
			cmd := exec.Command("catalog_server", "-p", port, "-I", "127.0.0.1", "-n", "localhost", "-u", "127.0.0.1:9",
				"-o", filepath.Join(dir, "log"))
			cmd.Dir = dir
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			s := serve(t, func(c *chirpd.Config) {
				c.Catalog = chirpd.Catalog{Hosts: []string{addr}, Interval: 200 * time.Millisecond, TCP: tcp, Owner: "alice", Project: "proj"}
			})
			_, own, _ := net.SplitHostPort(s.addr)
			var out []byte
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				out, _ = exec.CommandContext(ctx, "chirp_status", "-c", addr, "-t", "5").CombinedOutput()
				cancel()
				if strings.Contains(string(out), own) && strings.Contains(string(out), "alice") {
					return
				}
			}
			t.Fatalf("chirp_status shows\n%s", out)
		})
	}
}
