package anthropic_test
import ("context";"net/http";"net/http/httptest";"strings";"testing";"time";"fmt"
"github.com/rolecall/rolecall/model"
"github.com/rolecall/rolecall/model/anthropic")
func TestAtk(t *testing.T){
 for _, c := range []struct{name,unit string; size int}{
  {"calls-1MB", `{"type":"tool_use"},`, 1<<20},
  {"calls-2MB", `{"type":"tool_use"},`, 2<<20},
  {"calls-4MB", `{"type":"tool_use"},`, 4<<20},
 }{
  body := `{"stop_reason":"end_turn","content":[`+strings.Repeat(c.unit, c.size/len(c.unit))+`{}]}`
  s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request){ fmt.Fprint(w,body) }))
  m := anthropic.New(anthropic.Config{Name:"g",Model:"m",BaseURL:s.URL,Key:"k"})
  ctx, cancel := context.WithTimeout(context.Background(), time.Second)
  t0:=time.Now(); var e error
  for _, err := range m.Generate(ctx, model.Request{}) { e=err }
  cancel(); s.Close()
  t.Logf("%s: took %v with a context of 1s; err %.120v", c.name, time.Since(t0).Round(time.Millisecond), e)
 }
}
