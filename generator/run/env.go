package run

import (
	"maps"
	"slices"
	"strings"

	"skeletonkey/generator/job"
)

// environment is a list of NAME=VALUE, as os.Environ returns it.
type environment []string

// get returns a variable's value; the last one counts.
func (e environment) get(name string) string {
	for i := len(e) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// without returns a copy without the variables of these names.
func (e environment) without(names ...string) environment {
	return slices.DeleteFunc(slices.Clone(e), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.Contains(names, name)
	})
}

// with returns a copy in which the variables have these values.
func (e environment) with(values map[string]string) environment {
	names := slices.Sorted(maps.Keys(values))
	out := e.without(names...)
	for _, name := range names {
		out = append(out, name+"="+values[name])
	}
	return out
}

// application returns what the application sees: the environment that the job was
// started with, under it the web proxy, then what the job file sets, and last what
// tells where things are. proxy is the X.509 proxy file, if there is one.
func (e environment) application(j *job.Job, s *scratch, mount, proxy string) environment {
	out := e.without("CHIRP_MOUNT", "SKELETONKEY_SERVER", "OLDPWD")
	if web := e.webProxy(j); web != "" {
		out = out.with(map[string]string{"http_proxy": web, "HTTP_PROXY": web})
	}
	out = out.with(j.Environment)
	ours := map[string]string{"PWD": s.work(), scratchVariable: s.work()}
	if mount != "" {
		ours["CHIRP_MOUNT"], ours["SKELETONKEY_SERVER"] = mount, j.Server
	}
	if proxy != "" {
		ours["X509_USER_PROXY"] = proxy
	}
	return out.with(ours)
}
