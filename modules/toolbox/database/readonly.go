package database

import (
	"errors"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
)

// checkReadOnly rejects statements whose effects a read-only transaction of PostgreSQL or MySQL
// does not prevent. Some end the transaction from within: a compound statement of MariaDB, a call
// of a procedure. Others write files. So a statement must begin with one of readVerbs. Such a
// statement may still change something, such as WITH ... DELETE: the transaction rejects that.
func checkReadOnly(kind Type, statement string) error {
	word := strings.ToUpper(firstWord(statement))
	if !slices.Contains(readVerbs, word) {
		return errors.New("only statements that read are allowed here: begin with " + strings.Join(readVerbs, ", "))
	}
	if kind == MySQL && writesFile().MatchString(statement) {
		return errors.New("OUTFILE and DUMPFILE write a file and are not allowed here")
	}
	return nil
}

// readVerbs are the first words of statements that checkReadOnly accepts.
var readVerbs = []string{"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC"}

var writesFile = textutil.LazyPattern(`(?i)\b(OUTFILE|DUMPFILE)\b`)

const blanks = " \t\n\v\f\r"

// firstWord returns the first word of a statement: the letters after white space, opening
// parentheses and comments. It returns "" if servers may read one of these comments differently, so
// that checkReadOnly rejects the statement.
func firstWord(statement string) string {
	for {
		statement = strings.TrimLeft(statement, blanks+"(")
		rest, ok := afterComment(statement)
		if !ok {
			return ""
		}
		if len(rest) == len(statement) {
			break
		}
		statement = rest
	}
	end := strings.IndexFunc(statement, func(c rune) bool { return (c|0x20) < 'a' || (c|0x20) > 'z' })
	if end < 0 {
		return statement
	}
	return statement[:end]
}

// afterComment returns text without the comment that text begins with, if it begins with one. It
// reports false for a comment that some servers end at another place, or whose content they execute.
func afterComment(text string) (rest string, ok bool) {
	if strings.HasPrefix(text, "--") || strings.HasPrefix(text, "#") {
		comment, rest, _ := strings.Cut(text, "\n")
		return rest, !strings.Contains(strings.TrimSuffix(comment, "\r"), "\r")
	}
	comment, found := strings.CutPrefix(text, "/*")
	if !found {
		return text, true
	}
	comment, rest, closed := strings.Cut(comment, "*/")
	runs := strings.HasPrefix(comment, "!") || strings.HasPrefix(comment, "M!")
	return rest, closed && !runs && !strings.Contains(comment, "/*")
}
