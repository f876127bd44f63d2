package gateway

import (
	"encoding/base64"
	"net/http"
	"sort"
	"strconv"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
)

// defaultPageItems is the number of items on a page if a request sets none.
const defaultPageItems = 100

// paging selects a page: at most limit items whose keys are greater than after.
type paging struct {
	limit int
	after string
}

// parsePaging reads the query parameters limit and cursor. A limit over
// MaxPageItems is reduced to it.
func parsePaging(r *http.Request) (paging, error) {
	p := paging{limit: defaultPageItems}
	q := r.URL.Query()
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return p, errcode.New(errcode.InvalidArguments, "query parameter \"limit\" is %q; want a number from 1 to %d", text, wire.MaxPageItems).With("field", "limit")
		}
		p.limit = min(n, wire.MaxPageItems)
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Get("cursor"))
	if err != nil {
		return p, errInvalidCursor()
	}
	p.after = string(after)
	return p, nil
}

func errInvalidCursor() error {
	return errcode.New(errcode.InvalidArguments, "invalid query parameter \"cursor\"; use the value of next from the previous page").With("field", "cursor")
}

// encodeCursor returns the cursor after the item with this key.
func encodeCursor(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// paginate returns the page of a list that a request selects. list must be
// sorted by key; show converts its items.
func paginate[T, U any](r *http.Request, list []T, key func(T) string, show func(T) U) (wire.Page[U], error) {
	p, err := parsePaging(r)
	if err != nil {
		return wire.Page[U]{}, err
	}
	return pageOf(p, list, key, show), nil
}

// pageOf returns a page of a list, as paginate does.
func pageOf[T, U any](p paging, list []T, key func(T) string, show func(T) U) wire.Page[U] {
	list = list[sort.Search(len(list), func(i int) bool { return key(list[i]) > p.after }):]
	page := wire.Page[U]{Items: []U{}}
	if len(list) > p.limit {
		list = list[:p.limit]
		page.Next = encodeCursor(key(list[p.limit-1]))
	}
	for _, v := range list {
		page.Items = append(page.Items, show(v))
	}
	return page
}

// creationKey is the sort key of items that are sorted by creation time: a text
// that sorts like the time, then the id.
func creationKey(t time.Time, id string) string {
	return t.UTC().Format(creationLayout) + " " + id
}

// creationLayout is the form of the time in a creationKey.
const creationLayout = "2006-01-02T15:04:05.000000000Z"

// unchanged is a conversion for paginate that returns its argument.
func unchanged[T any](v T) T { return v }
