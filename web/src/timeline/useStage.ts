import { useEffect, useState, useSyncExternalStore } from 'react';
import { Renderer } from './renderer';
import { Stage, type StageState } from './stage';

/** useNewStage makes a stage that lives as long as the component. */
export function useNewStage(): Stage {
  const [stage] = useState(() => new Stage());
  useEffect(() => {
    stage.start((on) => new Renderer(on));
    return () => stage.close();
  }, [stage]);
  return stage;
}

/** useStage is one thing of a stage's state; a component renders again when that changes, and not whenever the pointer moves. */
export function useStage<Key extends keyof StageState>(stage: Stage, key: Key): StageState[Key] {
  return useSyncExternalStore(stage.subscribe, () => stage.state[key]);
}
