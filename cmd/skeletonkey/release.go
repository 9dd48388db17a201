package main

import (
	"context"
	"fmt"

	"skeletonkey/generator/job"
	"skeletonkey/installer"
)

// findRelease puts the archive of the release that a job asks for by version into
// the job, with its checksum: the script brings the same one however often it runs.
func (a *app) findRelease(ctx context.Context, app *job.Application) error {
	from, name, ok := app.Release()
	if !ok {
		return nil
	}
	key, err := publicKey(app.PublicKey)
	if err != nil {
		return err
	}
	r, err := installer.Resolve(ctx, from, name, app.Version, "",
		installer.ResolveOptions{Key: key, Fetch: installer.FetchOptions{Log: a.log}})
	if err != nil {
		return softwareError(err)
	}
	if r.SHA256 == "" {
		return exitError{job.ExitBadDownload, fmt.Errorf("[Application] location %s: nothing tells the checksum of %s", app.Location, r.File)}
	}
	a.log.Info("the job's release", "name", name, "version", r.Version, "url", r.URL)
	app.Location, app.SHA256, app.Version = r.URL, r.SHA256, r.Version
	return nil
}
