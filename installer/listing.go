package installer

import (
	"bytes"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// maxListing is how many links of a page are looked at.
const maxListing = 100_000

// listedFiles returns the names of the files that a page at base links to in its
// own directory, as web servers list one.
func listedFiles(page []byte, base *url.URL) (names []string) {
	z := html.NewTokenizer(bytes.NewReader(page))
	for len(names) < maxListing {
		switch z.Next() {
		case html.ErrorToken: // the end
			return names
		case html.StartTagToken:
			tag, more := z.TagName()
			for isLink := string(tag) == "a"; more; {
				var key, value []byte
				key, value, more = z.TagAttr()
				if !isLink || string(key) != "href" {
					continue
				}
				if name, ok := nameBelow(base, string(value)); ok {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// nameBelow returns the file name of a link to a file in base itself.
func nameBelow(base *url.URL, link string) (string, bool) {
	u, err := base.Parse(strings.TrimSpace(link))
	if err != nil || u.Host != base.Host || u.Scheme != base.Scheme || u.RawQuery != "" {
		return "", false
	}
	name, below := strings.CutPrefix(u.Path, base.Path)
	return name, below && plainName(name)
}
