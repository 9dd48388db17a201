package run

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"skeletonkey/chirpd/client"
	"skeletonkey/fusefs"
	"skeletonkey/fusefs/private"
	"skeletonkey/generator/job"
)

// export is a mounted directory of an export.
type export struct {
	*fusefs.Mounted
	where   string
	log     *slog.Logger
	release func() error // gives back the client
}

// mountExport mounts what c says at m.Where.
func mountExport(ctx context.Context, cl *client.Client, c *MountConfig, m private.Mount, log *slog.Logger) (*export, error) {
	f, err := fusefs.New(cl, fusefs.Options{Path: c.Path, ReadOnly: m.ReadOnly, Log: log})
	if err != nil {
		return nil, &Failure{job.ExitInternal, err}
	}
	// Root's application may become other users; any other one stays alone.
	o := fusefs.MountOptions{Way: fusefs.Direct, AllowOther: os.Geteuid() == 0}
	if c.Helper {
		o = fusefs.MountOptions{Way: fusefs.Fusermount}
	}
	mounted, err := fusefs.Mount(ctx, f, m.Where, o)
	var noWay *fusefs.NoWayError
	switch {
	case errors.As(err, &noWay):
		return nil, &Failure{job.ExitNoMount, errors.Join(noWay.Reasons...)}
	case err != nil:
		return nil, &Failure{serverCode(err), err}
	}
	return &export{Mounted: mounted, where: m.Where, log: log}, nil
}

// Close writes back, unmounts and lets go of the server. Its error means that data
// may be lost.
func (e *export) Close(ctx context.Context) error {
	e.log.Debug("phase unmount", "at", e.where)
	return errors.Join(e.Mounted.Close(ctx), e.release())
}
