package argschema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/strictjson"
)

func TestRuleSet_ZeroAllowsNothing(t *testing.T) {
	keys := new(strictjson.Shape)
	keys.Add("v", &strictjson.Shape{Rules: new(ruleSet)})
	for _, value := range []string{`null`, `true`, `false`, `0`, `0.5`, `""`, `[]`, `{}`} {
		r, err := strictjson.Read([]byte(`{"v":`+value+`}`), keys)
		if err != nil || r.Valid {
			t.Errorf("%s: got %+v, %v, want Valid false", value, r, err)
		}
	}
}

// The oracle for numbers is math/big.
func TestNumberRule_ComparesExactly(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		limit, step, value := randomDecimal(random, 20), randomDecimal(random, 5), randomDecimal(random, 18)
		if n, want, ok := randomRule(random, newRat(limit), newRat(step), newRat(value)); ok {
			keys := new(strictjson.Shape)
			keys.Add("v", &strictjson.Shape{Rules: &ruleSet{kinds: kindNumber, numbers: n}})
			r, err := strictjson.Read([]byte(`{"v":`+value+`}`), keys)
			if err != nil || r.Valid != want {
				t.Fatalf("%s with limit %s and step %s, %+v: got %v, %v, want %v; seed %d", value, limit, step, n, r.Valid, err, want, seed)
			}
		}
	}
}

// randomRule returns a rule and whether value satisfies it. ok is false if a numberRule cannot
// represent the rule.
func randomRule(random *rand.Rand, limit, step, value *big.Rat) (n *numberRule, want, ok bool) {
	n = newNumberRule()
	order, exclusive := value.Cmp(limit), random.IntN(2) == 0
	switch random.IntN(4) {
	case 0:
		ok = n.addMin(limit, exclusive)
		return n, order > 0 || order == 0 && !exclusive, ok
	case 1:
		ok = n.addMax(limit, exclusive)
		return n, order < 0 || order == 0 && !exclusive, ok
	case 2:
		n.integer = true
		return n, value.IsInt(), true
	}
	if step.Sign() <= 0 {
		return n, true, true
	}
	n.multipleOf, ok = newRatio(step)
	return n, new(big.Rat).Quo(value, step).IsInt(), ok
}

// randomDecimal returns a number of up to n characters, usually a short one.
func randomDecimal(random *rand.Rand, n int) string {
	n = 1 + random.IntN(1+random.IntN(n))
	digits := make([]byte, n)
	for i := range digits {
		digits[i] = '0' + byte(random.IntN(10)*random.IntN(2))
	}
	whole := new(big.Int)
	whole.SetString(string(digits[:(n+1)/2]), 10)
	text := whole.String()
	if n > 2 && random.IntN(2) == 0 {
		text += "." + string(digits[(n+1)/2:n-1])
	}
	if text[len(text)-1] == '.' {
		text += "0"
	}
	if random.IntN(3) == 0 {
		text = "-" + text
	}
	return text
}

func newRat(text string) *big.Rat {
	r, _ := new(big.Rat).SetString(text) // randomDecimal returns numbers
	return r
}

func TestRuleSet_FindsNames(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9, 63, 64, 65, 300} {
		keys := new(strictjson.Shape)
		var words []string
		for i := range n {
			word := fmt.Sprintf("%.*s%d", i%12, "abcdefghijkl", i*i)
			words = append(words, word)
			keys.Add(word, nil)
		}
		keys.Rules = &ruleSet{kinds: kindObject, objects: &objectRule{count: anyCount, closed: true}}
		keys.Add("word", &strictjson.Shape{Rules: &ruleSet{kinds: kindString,
			strings: &stringRule{length: anyCount, enum: newStringEnum(words)}}})
		for i := range n {
			wantFound(t, keys, words[i], n, true)
			wantFound(t, keys, words[i]+"-", n, false)
			wantFound(t, keys, "x"+words[i][1:]+"y", n, false)
		}
		wantFound(t, keys, "", n, false)
	}
}

func wantFound(t *testing.T, keys *strictjson.Shape, word string, n int, want bool) {
	t.Helper()
	for _, doc := range []any{map[string]any{"word": word}, map[string]any{word: 1}} {
		data, _ := json.Marshal(doc) // strings marshal
		if r, err := strictjson.Read(data, keys); err != nil || r.Valid != want {
			t.Errorf("%s among %d: got %v, %v, want %v", data, n, r.Valid, err, want)
		}
	}
}
