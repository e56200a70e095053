// What cuDNN's deviceless planning does not know, by rule.
#ifndef EMULATE_DNN_H
#define EMULATE_DNN_H

// plan_workspace is the workspace of a plan on the device, given the plan as
// JSON and what it is said to be without one.
long plan_workspace(const char *json, long without_device);

// plan_work reads what a plan asks of the card. Notes are of its engine.
struct work;
void plan_work(const char *json, unsigned notes, struct work *w);

#endif
