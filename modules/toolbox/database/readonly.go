package database

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// checkReadOnly holds a statement against what a server refuses in a transaction that
// only reads: it lets through what ends the transaction from within (a block of
// MariaDB, a procedure) and what writes files. So a reader is one of the
// statements that do nothing but read, and the transaction does the rest.
func checkReadOnly(kind Type, statement string) error {
	word := strings.ToUpper(firstWord(statement))
	if !slices.Contains(readers, word) {
		return errors.New("only statements that read are let through here: begin it with " + strings.Join(readers, ", "))
	}
	if kind == MySQL && writesFile.MatchString(statement) {
		return errors.New("OUTFILE and DUMPFILE write a file, and are not let through here")
	}
	return nil
}

// readers are the words that statements which read begin with.
var readers = []string{"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC"}

var writesFile = regexp.MustCompile(`(?i)\b(OUTFILE|DUMPFILE)\b`)

const blanks = " \t\n\v\f\r"

// firstWord gives the letters that a statement begins with, after blanks,
// parentheses and comments; "" where servers do not agree where a comment ends,
// or run what is in it.
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

// afterComment gives what follows the comment that text begins with, all of it
// if there is none.
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

// setting finds what could switch off what holds a database in memory to
// reading, or change it for others: it has a single connection, which others
// write with. Functions such as pragma_table_info set nothing.
var setting = regexp.MustCompile(`(?i)\bpragma\b`)

// ofProcess finds settings of SQLite that are not a connection's, but of all
// databases in the process.
var ofProcess = regexp.MustCompile(`(?i)(temp|data)_store_directory`)
