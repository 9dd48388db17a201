package private

import "testing"

// TestNoNamespace: without a namespace all but the privacy is as with one.
func TestNoNamespace(t *testing.T) {
	needRoot(t) // the file system of these tests mounts by itself
	place := openDir(t)
	p := script("cat " + place + "/hello; setsid sleep 1000 & exec 9<" + place + "/hello; exit 3")
	p.NoNamespace, p.Mounts[0].Where = true, place
	o := job{plan: p}.run(t)
	o.expect(t, 3, "hello, world\n")
	if o.Result.Way != "no namespace" {
		t.Errorf("way %q", o.Result.Way)
	}
	p.Mounts[0].Where = place + "/missing"
	job{plan: p}.run(t).expectError(t, "ErrNoMountPoint", "")
}
