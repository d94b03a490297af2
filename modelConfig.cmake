# model::model is the shared library, model::static the other one.
if(NOT TARGET model::model)
  add_library(model::model SHARED IMPORTED)
  set_target_properties(model::model PROPERTIES
    IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/libmodel.so.0"
    IMPORTED_SONAME libmodel.so.0)
  add_library(model::static STATIC IMPORTED)
  set_target_properties(model::static PROPERTIES
    IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/libmodel.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES C)
  target_include_directories(model::model INTERFACE "${CMAKE_CURRENT_LIST_DIR}" [=[/work/h-ci/runtime/include]=])
  target_include_directories(model::static INTERFACE "${CMAKE_CURRENT_LIST_DIR}" [=[/work/h-ci/runtime/include]=])
  target_link_libraries(model::static INTERFACE [=[/work/h-ci/build/libgnnrt.a]=] [=[-Wl,--as-needed]=] [=[-ldnnl]=] [=[-lmetis]=] [=[-lgomp]=] [=[-pthread]=] [=[-lz]=] [=[-lm]=])
endif()
