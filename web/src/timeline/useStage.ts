import { useEffect, useState, useSyncExternalStore } from 'react';
import { Stage, type StageState } from './stage';

/** useNewStage makes a stage that lives as long as the component. */
export function useNewStage(): Stage {
  const [stage] = useState(() => new Stage());
  useEffect(() => {
    stage.start();
    return () => stage.close();
  }, [stage]);
  return stage;
}

export function useStage(stage: Stage): StageState {
  return useSyncExternalStore(stage.subscribe, () => stage.state);
}
