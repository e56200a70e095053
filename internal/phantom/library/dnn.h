// What cuDNN's deviceless planning does not know, by rule.
#ifndef PHANTOM_DNN_H
#define PHANTOM_DNN_H

// plan_workspace is the workspace of a plan on the device, given the plan as
// JSON and what it is said to be without one.
long plan_workspace(const char *json, long without_device);

#endif
