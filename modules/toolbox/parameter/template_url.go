package parameter

import (
	"fmt"
)

// The functions that encode a value for a URL. Templates of Toolbox call them in paths, where it
// encodes nothing by itself.
const (
	pathEscapeName  = "pathEscape"
	queryEscapeName = "queryEscape"
)

// pathEscape returns a value as one segment of a path. Unlike url.PathEscape it encodes the
// characters that have a meaning in a query too, because the template may stand there.
func (r *renderer) pathEscape(value any) (string, error) {
	plain, err := r.plainText(value)
	if err != nil {
		return "", fmt.Errorf("its argument %w", err)
	}
	escaped, err := FormatPath.escape(plain)
	if err != nil {
		return "", fmt.Errorf("its argument %w", err)
	}
	return escaped, r.count(len(escaped))
}

// queryEscape is pathEscape that accepts a missing value and an empty text in a query, where
// they are empty. A space is %20, which has the same meaning as + there.
func (r *renderer) queryEscape(value any) (string, error) {
	if (value == nil || value == text("") || value == "") && r.query {
		return "", r.count(0)
	}
	return r.pathEscape(value)
}

// plainText returns the text of a value as it is before it is escaped: a map is JSON.
func (r *renderer) plainText(value any) (text, error) {
	switch value := value.(type) {
	case nil:
		return "", errMissing
	case map[string]any, []any:
		doc, err := r.source(value)
		return text(doc), err
	}
	return text(fmt.Sprint(value)), nil
}
