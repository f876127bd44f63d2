package database

import (
	"errors"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
)

// checkReadOnly rejects statements that a read-only transaction would not stop: those
// that can end the transaction from within (a compound statement of MariaDB, a
// procedure), and those that write files. It accepts statements that begin with a verb
// that only reads; the transaction rejects the remaining changes.
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

// readVerbs are the words that a statement which only reads may begin with.
var readVerbs = []string{"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC"}

var writesFile = textutil.LazyPattern(`(?i)\b(OUTFILE|DUMPFILE)\b`)

const blanks = " \t\n\v\f\r"

// firstWord returns the letters that a statement begins with, after white space,
// parentheses and comments. It returns "" after a comment whose end servers disagree
// on, or whose content they execute.
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

// afterComment returns the text after the comment it begins with, all of it without a
// comment. It reports false if servers may read the comment differently.
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

// pragmaPattern matches statements that could switch off query_only, or change settings
// for others, in a database in memory: it has one connection, which all callers share.
// Functions such as pragma_table_info do not match.
var pragmaPattern = textutil.LazyPattern(`(?i)\bpragma\b`)

// processSetting matches settings of SQLite that apply to all databases of the process.
var processSetting = textutil.LazyPattern(`(?i)(temp|data)_store_directory|(hard|soft)_heap_limit`)
