package client

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"skeletonkey/chirpd/wire"
)

// The longest answers that are believed, in bytes: those of Linux for extended
// attributes.
const (
	maxAttr   = 64 << 10
	maxDigest = 1024
)

// Getxattr returns an extended attribute of what path leads to. One that is not
// there is ENODATA.
func (c *Client) Getxattr(ctx context.Context, path, name string) ([]byte, error) {
	b, err := c.blob(ctx, c.call("getxattr", path, pure, &wire.Getxattr{Path: path, Name: name}), maxAttr)
	return b, noAttr(err)
}

// noAttr tells a missing attribute from other failures as well as the plain
// protocol allows: real servers answer Unknown, ours InvalidRequest, which has
// no better meaning for a request that gets or removes an attribute.
func noAttr(err error) error {
	var e *wire.Error
	if errors.As(err, &e) && e.Err == nil && (e.Code == wire.Unknown || e.Code == wire.InvalidRequest) {
		e.Err = &cause{syscall.ENODATA, "no such attribute", nil}
	}
	return err
}

// Lgetxattr is Getxattr of a link itself.
func (c *Client) Lgetxattr(ctx context.Context, path, name string) ([]byte, error) {
	b, err := c.blob(ctx, c.call("lgetxattr", path, pure, &wire.Lgetxattr{Path: path, Name: name}), maxAttr)
	return b, noAttr(err)
}

// Listxattr returns the names of the extended attributes of what path leads to.
func (c *Client) Listxattr(ctx context.Context, path string) ([]string, error) {
	b, err := c.blob(ctx, c.call("listxattr", path, pure, &wire.Listxattr{Path: path}), maxAttr)
	return attrNames(b), err
}

// Llistxattr is Listxattr of a link itself.
func (c *Client) Llistxattr(ctx context.Context, path string) ([]string, error) {
	b, err := c.blob(ctx, c.call("llistxattr", path, pure, &wire.Llistxattr{Path: path}), maxAttr)
	return attrNames(b), err
}

func attrNames(b []byte) []string {
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == 0 })
}

// The flags of Setxattr, as in setxattr(2).
const (
	XattrCreate  = 1
	XattrReplace = 2
)

// Setxattr sets an extended attribute of what path leads to. flags are 0,
// XattrCreate or XattrReplace.
func (c *Client) Setxattr(ctx context.Context, path, name string, value []byte, flags int64) error {
	r := &wire.Setxattr{Path: path, Name: name, Length: int64(len(value)), Flags: flags}
	return c.setxattr(ctx, r, path, value)
}

// Lsetxattr is Setxattr of a link itself.
func (c *Client) Lsetxattr(ctx context.Context, path, name string, value []byte, flags int64) error {
	r := &wire.Lsetxattr{Path: path, Name: name, Length: int64(len(value)), Flags: flags}
	return c.setxattr(ctx, r, path, value)
}

func (c *Client) setxattr(ctx context.Context, r wire.Request, path string, value []byte) error {
	k := c.call(r.Command(), path, once, r)
	k.data = value
	_, err := c.do(ctx, k)
	return err
}

// Removexattr removes an extended attribute of what path leads to.
func (c *Client) Removexattr(ctx context.Context, path, name string) error {
	return noAttr(c.change(ctx, path, &wire.Removexattr{Path: path, Name: name}))
}

// Lremovexattr is Removexattr of a link itself.
func (c *Client) Lremovexattr(ctx context.Context, path, name string) error {
	return noAttr(c.change(ctx, path, &wire.Lremovexattr{Path: path, Name: name}))
}

// Hash returns a file's sum, which the server works out: algorithm is md5 or sha1.
func (c *Client) Hash(ctx context.Context, algorithm, path string) ([]byte, error) {
	return c.sum(ctx, c.call("hash", path, pure, &wire.Hash{Algorithm: algorithm, Path: path}))
}

// MD5 returns a file's MD5 sum, which the server works out.
func (c *Client) MD5(ctx context.Context, path string) ([]byte, error) {
	return c.sum(ctx, c.call("md5", path, pure, &wire.MD5{Path: path}))
}

func (c *Client) sum(ctx context.Context, k *Call) ([]byte, error) {
	read, b := blob(maxDigest)
	k.read = read
	if _, err := c.alone(ctx, k); err != nil {
		return nil, err
	}
	return *b, nil
}

// Whoami returns the subject that the server takes the caller for.
func (c *Client) Whoami(ctx context.Context) (string, error) {
	b, err := c.blob(ctx, c.call("whoami", "", pure, &wire.Whoami{Length: maxDigest}), maxDigest)
	return string(b), err
}

// Whoareyou returns the subject that the server has at another server, host.
func (c *Client) Whoareyou(ctx context.Context, host string) (string, error) {
	b, err := c.blob(ctx, c.call("whoareyou", "", pure, &wire.Whoareyou{Host: host, Length: maxDigest}), maxDigest)
	return string(b), err
}
