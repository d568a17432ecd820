package docker

import "testing"

// The conformance suite on the real engine, one test a case. The rows are in the names.

func TestAttackT14_MemoryBombsEndOneCommand(t *testing.T)                         { conform(t) }
func TestAttackT15_BusyProcessorsDoNotSlowTheControls(t *testing.T)               { conform(t) }
func TestAttackT19_FloodsOfProcessOnesOutputFillNoLog(t *testing.T)               { conform(t) }
func TestAttackT20_FloodsAreBoundedAndCounted(t *testing.T)                       { conform(t) }
func TestAttackT11_EXW17_WordsAndNamesAreTakenLiterally(t *testing.T)             { conform(t) }
func TestAttackT13_EX04_OrphansAndSleepersStayBelowTheCap(t *testing.T)           { conform(t) }
func TestAttackT13_D24_ForksUpToTheCapAreStopped(t *testing.T)                    { conform(t) }
func TestSTP02_EXW10_ForgedFilesHitNobody(t *testing.T)                           { conform(t) }
func TestSTP02_EXW07_FullTmpHindersNoStop(t *testing.T)                           { conform(t) }
func TestSTP02_EmptiedTmpHindersNoStop(t *testing.T)                              { conform(t) }
func TestSTP09_AKilledWrapperIsNoExitCode(t *testing.T)                           { conform(t) }
func TestD19_PlantedCommandsAreNotRun(t *testing.T)                               { conform(t) }
func TestKIL01_ARunningCommandEndsWith137(t *testing.T)                           { conform(t) }
func TestKIL02_KIL03_TMO08_CommandsThatHadExited(t *testing.T)                    { conform(t) }
func TestKIL04_NothingIsLeftToKillAndAProcessHolds(t *testing.T)                  { conform(t) }
func TestKIL05_KIL07_TheEndIsStillOnItsWay(t *testing.T)                          { conform(t) }
func TestKIL06_D02_TheEndDoesNotCome(t *testing.T)                                { conform(t) }
func TestKIL09_KIL10_KIL11_ByTheContainersState(t *testing.T)                     { conform(t) }
func TestKIL12_KillingTwiceAndAfterTheEnd(t *testing.T)                           { conform(t) }
func TestEXW14_TheNextCommandRemovesWhatNothingHolds(t *testing.T)                { conform(t) }
func TestEXW15_LeftoversThatCannotBeRemovedStopTheNextCommand(t *testing.T)       { conform(t) }
func TestSTP01_STP11_AStartThatIsCancelledNeverRuns(t *testing.T)                 { conform(t) }
func TestSTP02_EXW16_TheWholeGroupEndsAtOnce(t *testing.T)                        { conform(t) }
func TestSTP03_STP04_STP10_WhatIsInTheGroupAndWhatIsNot(t *testing.T)             { conform(t) }
func TestSTP05_WhatStillHoldsIsReported(t *testing.T)                             { conform(t) }
func TestSTP06_AStopThatCannotLookFails(t *testing.T)                             { conform(t) }
func TestSTP08_EXW06_KillsAtRandomInstants(t *testing.T)                          { conform(t) }
func TestSTP09_KIL08_AStoppedWrapperMakesTheStopFail(t *testing.T)                { conform(t) }
func TestSTP12_STP13_AStopEndsInTimeWhoeverWaits(t *testing.T)                    { conform(t) }
func TestSTP14_AFailedStopSaysWhatItHadHeard(t *testing.T)                        { conform(t) }
func TestSTR01_STR03_AReaderThatTakesNothingForLong(t *testing.T)                 { conform(t) }
func TestSTR02_OverASlowLineNothingIsLostInSilence(t *testing.T)                  { conform(t) }
func TestSTR04_WhatAChildPrintsLateIsRead(t *testing.T)                           { conform(t) }
func TestSTR05_TMO09_D04_HeldAtTheTimeoutIsATimeout(t *testing.T)                 { conform(t) }
func TestSTP07_STR06_STR07_STR08_AStreamThatIsNotTakenHoldsUpNobody(t *testing.T) { conform(t) }
func TestSTR09_ACutStreamIsLostAndKillStillStopsItsCommand(t *testing.T)          { conform(t) }
func TestSTR10_GoneContainersEndTheOutput(t *testing.T)                           { conform(t) }
func TestSTR11_TheStreamsStayApartByteByByte(t *testing.T)                        { conform(t) }
func TestSTR12_WhatCameBeforeAKillIsKeptInOrder(t *testing.T)                     { conform(t) }
func TestTMO01_TMO02_TMO03_D03_TheTimeoutIsOursAndCutsTheOutput(t *testing.T)     { conform(t) }
func TestTMO04_EveryByteIsCounted(t *testing.T)                                   { conform(t) }
func TestTMO05_ACountThatMayMissOutputSaysSo(t *testing.T)                        { conform(t) }
func TestTMO06_AHolderThatLeftIsNoted(t *testing.T)                               { conform(t) }
func TestTMO07_AFailedKillLeavesItATimeout(t *testing.T)                          { conform(t) }
func TestTMO10_EndAndTimeoutRace(t *testing.T)                                    { conform(t) }
func TestEXW01_STP15_EveryImageOfTheContract(t *testing.T)                        { conform(t) }
func TestEXW02_EXW03_EXW04_CommandsRunInTheWrapper(t *testing.T)                  { conform(t) }
func TestEXW05_PidFileIsWholeOrAbsent(t *testing.T)                               { conform(t) }
func TestEXW07_NothingRunsWhereTmpCannotBeWritten(t *testing.T)                   { conform(t) }
func TestEXW01_EXW08_NothingRunsWithoutACommandOfTheContract(t *testing.T)        { conform(t) }
func TestEXW09_HolderKeepsTheGroupsId(t *testing.T)                               { conform(t) }
func TestEXW10_FreedIdsAreNotSignalled(t *testing.T)                              { conform(t) }
func TestEXW11_ARunningChildThatHoldsIsWaitedFor(t *testing.T)                    { conform(t) }
func TestEXW12_UnreadableProcessesAreWaitedFor(t *testing.T)                      { conform(t) }
func TestEXW13_ExitCodesPassThrough(t *testing.T)                                 { conform(t) }
func TestEXW18_InputArrivesWithItsEnd(t *testing.T)                               { conform(t) }
func TestEXW19_NothingOfTheWrapperLeaks(t *testing.T)                             { conform(t) }
func TestEXW21_NoSuchCommandAndNotExecutable(t *testing.T)                        { conform(t) }
func TestEXW22_TheWrapperHoldsNothingUp(t *testing.T)                             { conform(t) }
func TestEXW23_OthersAreNeverWaitedFor(t *testing.T)                              { conform(t) }
