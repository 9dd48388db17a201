package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode returns the Job as JSON, indented, with a line feed at the end. The same Job gives the same
// bytes. A Job that Decode would refuse is an error.
func (j *Job) Encode() ([]byte, error) {
	if err := errors.Join(j.Validate(), j.complete()); err != nil {
		return nil, err
	}
	return j.encode()
}

func (j *Job) encode() ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(j); err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	return buf.Bytes(), nil
}

// Decode reads what Encode wrote, and nothing else: another version, an unknown or repeated field,
// another spelling or anything after the end is an error, and so is a Job that does not validate or
// lacks its ticket. White space between tokens does not count.
func Decode(data []byte) (*Job, error) {
	var version struct{ Version int }
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	if version.Version != Version {
		return nil, fmt.Errorf("job: version %d is not understood, only %d; generate the job again", version.Version, Version)
	}
	j := new(Job)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(j); err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("job: something follows its end")
	}
	if err := errors.Join(j.Validate(), j.complete()); err != nil {
		return nil, err
	}
	if err := j.checkSame(data); err != nil {
		return nil, err
	}
	return j, nil
}

// checkSame refuses what encoding/json lets pass: repeated fields, other cases, bytes that are not UTF-8.
func (j *Job) checkSame(data []byte) error {
	again, err := j.encode()
	if err != nil {
		return err
	}
	var got, want bytes.Buffer
	if err := errors.Join(json.Compact(&got, data), json.Compact(&want, again)); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		return errors.New("job: not written by this version of skeletonkey")
	}
	return nil
}
