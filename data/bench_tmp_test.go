package data
import ("testing";"time";"strings";"fmt";"math/rand")
func TestTmp(t *testing.T){ 
 var b strings.Builder
 var us, ns, ud []string
 for u:=range 40 { var xs, ys []string
  for range 50 { c:=make([]string,784); for i:=range c { c[i]="1.0"; if rand.Intn(4)==0 { c[i]=fmt.Sprint(float64(rand.Intn(255))/255) } }; xs=append(xs,"["+strings.Join(c,", ")+"]"); ys=append(ys,"5") }
  us=append(us,fmt.Sprintf("%q",fmt.Sprint(u))); ns=append(ns,"50"); ud=append(ud, fmt.Sprintf("%q: {\"x\": [%s], \"y\": [%s]}", fmt.Sprint(u), strings.Join(xs,", "), strings.Join(ys,", "))) }
 b.WriteString(leafFile("["+strings.Join(us,",")+"]","["+strings.Join(ns,",")+"]","{"+strings.Join(ud,",")+"}"))
 for range 3 { s:=time.Now(); w,err:=ReadLEAF("x", strings.NewReader(b.String())); t.Log(time.Since(s), w.Images.Len(), b.Len(), err, w.Report.Notes) }
}
