package generator

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"skeletonkey/generator/job"
)

// keyLimit bounds the file of a repository's public key, in bytes.
const keyLimit = 64 << 10

// bringKeys puts the public keys of the Job's CVMFS repositories into it: whom a job trusts is settled when
// its script is made, and not by what a node fetches.
func bringKeys(ctx context.Context, j *job.Job) error {
	for i := range j.CVMFS {
		r := &j.CVMFS[i]
		if r.Key == "" {
			continue
		}
		text, err := readKey(ctx, r.Key)
		if err == nil {
			err = checkKey(text)
		}
		if err != nil {
			return fmt.Errorf("key of the CVMFS repository %s, %s: %w", r.Name, r.Key, err)
		}
		r.PublicKey = string(text)
	}
	return nil
}

func readKey(ctx context.Context, location string) ([]byte, error) {
	if !strings.HasPrefix(location, "http://") && !strings.HasPrefix(location, "https://") {
		return os.ReadFile(strings.TrimPrefix(location, "file://"))
	}
	ctx, cancel := context.WithTimeout(ctx, sumsTimeout)
	defer cancel()
	res, err := request(ctx, http.MethodGet, location)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(res.Body, keyLimit+1))
}

// checkKey finds out what is no key at all, such as a web server's page.
func checkKey(text []byte) error {
	if len(text) > keyLimit {
		return fmt.Errorf("it is larger than %d bytes", keyLimit)
	}
	if block, _ := pem.Decode(text); block == nil || !strings.Contains(block.Type, "PUBLIC KEY") {
		return errors.New("it holds no public key in PEM")
	}
	return nil
}
