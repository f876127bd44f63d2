package gateway

import (
	"encoding/base64"
	"net/http"
	"sort"
	"strconv"
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// Page is one page of a sorted list. Next asks for the one after it and is
// absent on the last.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// How many items a page has.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// paging is what a request says about pages: at most limit items whose keys
// are greater than after.
type paging struct {
	limit int
	after string
}

// pagingOf reads limit and cursor. A limit over the most is the most.
func pagingOf(r *http.Request) (paging, error) {
	p := paging{limit: defaultLimit}
	q := r.URL.Query()
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return p, errcode.New(errcode.InvalidArguments, "query parameter \"limit\" is %q; it takes a number from 1 to %d", text, maxLimit).With("field", "limit")
		}
		p.limit = min(n, maxLimit)
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Get("cursor"))
	if err != nil {
		return p, errcode.New(errcode.InvalidArguments, "query parameter \"cursor\" is not one that a list gave as next").With("field", "cursor")
	}
	p.after = string(after)
	return p, nil
}

func cursorOf(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// paginate cuts the page a request asks for out of a list that is sorted by
// key, and shows each of its items.
func paginate[T, U any](r *http.Request, list []T, key func(T) string, show func(T) U) (Page[U], error) {
	p, err := pagingOf(r)
	if err != nil {
		return Page[U]{}, err
	}
	list = list[sort.Search(len(list), func(i int) bool { return key(list[i]) > p.after }):]
	page := Page[U]{Items: []U{}}
	if len(list) > p.limit {
		list = list[:p.limit]
		page.Next = cursorOf(key(list[p.limit-1]))
	}
	for _, v := range list {
		page.Items = append(page.Items, show(v))
	}
	return page, nil
}

// byCreation is the key of things that are sorted by age: text that sorts as the
// times do, then the id.
func byCreation(t time.Time, id string) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000000Z ") + id
}

func same[T any](v T) T { return v }
