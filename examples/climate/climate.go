package climate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

//go:embed app job.ini make-records.sh
var files embed.FS

// Names of what the example holds and makes.
const (
	Script  = "climate/climate.sh" // the application in the archive, as job.ini names it
	Archive = "climate.tar.gz"     // the archive, as job.ini names it
	Records = "records"            // the directory that the job of job.ini reads
	Results = "results"            // the directory that it writes
	Table   = "climate.tsv"        // the table, in Results
	Plot    = "climate.svg"        // the picture, in Results
)

// Values that stand in job.ini for those of a real machine.
const (
	sampleServer = "data.example.org:9094"
	sampleWeb    = "http://data.example.org:9095"
	sampleBase   = "/data/climate"
)

// made is the time of every member of the archive, so that equal files make equal archives.
var made = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// Files returns the files of the example: app/ with the application, the sample job.ini, and
// make-records.sh, which takes a directory and fills it with made-up records. They are read-only
// and without execute bits: run the scripts as `sh NAME`.
func Files() fs.FS { return files }

// Job returns the sample job file for a server (HOST:PORT) that exports the directory base, and a web
// server (URL without / at its end) with the Archive at its root and the runtime below /dist. The
// values are put in as they are: they must fit in a line each.
func Job(server, web, base string) ([]byte, error) {
	sample, err := files.ReadFile("job.ini")
	if err != nil {
		return nil, fmt.Errorf("example job: %w", err)
	}
	job := strings.NewReplacer(sampleWeb, web, sampleServer, server, sampleBase, base).Replace(string(sample))
	return []byte(job), nil
}

// Tarball returns the application as a gzipped tar archive with the one top directory climate. Every
// call returns the same bytes; the caller owns them.
func Tarball() ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("example archive: %w", err)
	}
	archive := tar.NewWriter(zip)
	err = fs.WalkDir(files, "app", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return add(archive, name, entry.IsDir())
	})
	for _, end := range []func() error{archive.Close, zip.Close} {
		if err == nil {
			err = end()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("example archive: %w", err)
	}
	return out.Bytes(), nil
}

// add writes one member; owner, time and modes are the same for everybody who packs it.
func add(archive *tar.Writer, name string, dir bool) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     "climate" + strings.TrimPrefix(name, "app"),
		Mode:     0o644,
		ModTime:  made,
		Format:   tar.FormatUSTAR,
	}
	if dir {
		header.Typeflag, header.Mode, header.Name = tar.TypeDir, 0o755, header.Name+"/"
		return archive.WriteHeader(header)
	}
	if path.Ext(name) == ".sh" {
		header.Mode = 0o755
	}
	data, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	header.Size = int64(len(data))
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = archive.Write(data)
	return err
}
