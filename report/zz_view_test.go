package report
import ("testing";"os")
func TestZZ(t *testing.T){
 for n,s:=range map[string]Study{"hospital":hospitalStudy(),"fairness":fairnessStudy()}{
  if err:=WriteStudy("/tmp/study/"+n+".html",s);err!=nil{t.Fatal(err)}
  f,_:=os.Create("/tmp/study/"+n+".txt"); StudyTable(f,s); f.Close()
 }
}
