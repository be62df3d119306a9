package account
import ("testing";"fmt";"math")
func TestDbg(t *testing.T){
 c := composition{sources: []lossSource{poissonLoss{poissonGaussian{1e-4,.7},true}}, times: []float64{10000}, maxGrid: 1<<20}
 delta:=1e-6
 tail := math.Max(delta*1e-9/c.total(), 1e-290)
 for _,g:=range []float64{10,1,.5,.2,.16,.1}{
  b,l,w:=c.pass(delta,tail,1e-4,g)
  fmt.Println(g,b,l,w)
 }
}
