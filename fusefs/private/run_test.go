package private

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	p := plan("/chirp/host:9094", "sh", "-c", "cat /chirp/host:9094/hello; ls -la / /proc/self/fd; ps axf; cat /proc/self/mountinfo; cat /proc/self/status | grep -i cap; /chirp/host:9094/prog 1 2; exit 3")
	p.Stdout, p.Stderr = os.Stdout, os.Stderr
	p.Log = slog.Default()
	res, err := Run(ctx, p, nil)
	t.Log(res, err)
}
